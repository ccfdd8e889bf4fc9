"""An embedded PostgreSQL: one cluster in one directory, reached through a socket in it, safe to start from anywhere."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import psycopg

from sandbox.servers import CannotStart, accounts, identities, locks, wheels
from sandbox.servers.lasting import Lasting

SUPERUSER = "postgres"
SOCKET = ".s.PGSQL.5432"
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "password_encryption": "scram-sha-256",
    "max_wal_size": "512MB",
}
# For data that nobody needs after a power cut. Killed processes lose nothing even so.
# Passwords are shown to it often: what makes guessing one slow costs each connection five milliseconds.
QUICK = {"fsync": "off", "full_page_writes": "off", "scram_iterations": "1"}
# Whoever supervises is the superuser, by the operating system's word; every other login shows its password.
HBA = f"local all {SUPERUSER} peer map=supervisor\nlocal all all scram-sha-256\n"


class Server:
    """The PostgreSQL of one data directory. Starting it again, or from two processes at once, changes nothing."""

    def __init__(self, *, data: Path, log: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        self.data = data.expanduser().absolute()
        self.log = log or self.data.with_name(self.data.name + ".log")
        self.settings = SETTINGS | dict(settings or {})
        self.account = accounts.for_servers()
        self._child: Lasting | None = None

    def start(self, *, seconds: float = 60) -> None:
        """Make the cluster if there is none, and return when the server answers; raises CannotStart."""
        accounts.check_owner(self.data.parent)
        with locks.alone(self.data.with_name(self.data.name + ".lock")):
            programs = wheels.postgres(self.account)
            self._make_cluster(programs)
            self._start(programs, deadline=time.monotonic() + seconds)

    def stop(self, *, seconds: float = 30) -> None:
        """Disconnect everybody and stop the server if it runs; kills it if it has not stopped by then."""
        deadline = time.monotonic() + seconds
        for word in (signal.SIGINT, signal.SIGQUIT):  # fast, then immediate shutdown
            if pid := self.postmaster():
                os.kill(pid, word)
            while self.postmaster() and time.monotonic() < deadline:
                time.sleep(0.02)
            deadline += 5

    def ready(self) -> bool:
        """Say whether the server answers the superuser."""
        try:
            with psycopg.connect(self.superuser_url(), connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def postmaster(self) -> int | None:
        """Return the pid of the server that runs on this very directory, or None."""
        if self._child and self._child.poll() is None:  # asking also ends a zombie of ours
            return self._child.pid
        pid = first_number(self._cluster() / "postmaster.pid")
        return pid if pid and self._is_ours(pid) else None

    def superuser_url(self, database: str = "postgres") -> str:
        """Return the superuser's address, of use only to the account that supervises."""
        return self.url(user=SUPERUSER, database=database)

    def url(self, *, user: str, database: str, password: str = "") -> str:
        """Return the address of a database as a login."""
        who = quote(user, safe="") + (":" + quote(password, safe="") if password else "")
        return f"postgresql://{who}@/{quote(database, safe='')}?host={quote(str(self._socket_directory()), safe='')}"

    # -- the cluster ---------------------------------------------------------------------------
    def _cluster(self) -> Path:
        return Path(os.path.realpath(self.data))

    def _socket_directory(self) -> Path:
        """Return where the socket is; a long path does not fit into a socket's address (104 bytes on macOS)."""
        inside = self._cluster() / "sock"
        if len(os.fsencode(inside / SOCKET)) < 100:
            return inside
        return Path("/tmp") / f"backstop-{self.account.uid}-{sha256(os.fsencode(inside)).hexdigest()[:12]}"  # noqa: S108  # own 0700 folder

    def _make_cluster(self, programs: Path) -> None:
        """Run initdb beside the final place and move the result there, so that a cluster is whole or absent."""
        if self.data.is_symlink() and not self.data.exists():
            raise CannotStart(f"The database files of {self.data} are gone: remove that link to start with an empty database.")
        if self.data.exists():
            return self._check_version(programs)
        home = self._home()
        making = home / f"{self.data.name}.making"
        shutil.rmtree(making, ignore_errors=True)  # an initdb that was cut off
        making.mkdir(mode=0o700)
        self.account.own(making)
        self._initdb(programs, making)
        os.rename(making, home / self.data.name)
        if home != self.data.parent:
            self.data.symlink_to(home / self.data.name)

    def _home(self) -> Path:
        """Return the directory to keep the cluster in: ours, or one that the unprivileged account can get to."""
        if not self.account.changes or self.account.may_enter(self.data.parent):
            return self.data.parent
        home = Path(tempfile.mkdtemp(prefix="backstop-", dir=wheels.STATE))
        home.chmod(0o711)
        return home

    def _initdb(self, programs: Path, directory: Path) -> None:
        arguments = (
            f"-U {SUPERUSER} -A peer -E UTF8 --locale-provider=builtin --builtin-locale=C.UTF-8 --locale=C --no-instructions"
        )
        command = [str(programs / "initdb"), "-D", str(directory), *arguments.split()]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment(), **self.account.arguments())
        if done.returncode:
            raise CannotStart(reason(done.stderr, "PostgreSQL's data directory could not be made"))

    def _check_version(self, programs: Path) -> None:
        """Refuse a cluster that another major version made: the server could not open it."""
        version = self._cluster() / "PG_VERSION"
        made_by = version.read_text().strip() if version.exists() else "unknown"
        told = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=True, cwd="/").stdout
        ours = told.split()[-1].split(".")[0]
        if made_by != ours:
            raise CannotStart(
                f"{self.data} holds data of PostgreSQL {made_by}, not {ours}: move it away or choose another --data."
            )

    # -- the process ---------------------------------------------------------------------------
    def _start(self, programs: Path, *, deadline: float) -> None:
        while time.monotonic() < deadline:
            if self.postmaster() and not self.ready():
                time.sleep(0.02)  # starting up, recovering, or dying of a kill
            elif self.postmaster():
                return
            else:
                self._launch(programs, deadline=deadline)
        raise CannotStart(f"PostgreSQL was not ready in time: see {self.log}.")

    def _launch(self, programs: Path, *, deadline: float) -> None:
        """Start the process and wait until it answers; returns without it when a short wait may help."""
        if self._child:
            self._child.wait(timeout=5)  # it has ended, since nobody runs on this directory
        self._clear_stale_locks()
        self._write_configuration()
        seen = self.log.stat().st_size if self.log.exists() else 0
        options = [word for name, value in self._options().items() for word in ("-c", f"{name}={value}")]
        with open(self.log, "ab") as log:
            self._child = Lasting(
                [programs / "postgres", "-D", self._cluster(), *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", env=environment(), start_new_session=True,
                **self.account.arguments(),
            )  # fmt: skip
        while self._child.poll() is None and time.monotonic() < deadline:
            if self.ready():
                return
            time.sleep(0.02)
        with open(self.log, "rb") as log:
            log.seek(seen)
            tail = log.read().decode(errors="replace")
        if self._child.poll() is not None and "shared memory block" not in tail and "lock file" not in tail:
            raise CannotStart(reason(tail, f"PostgreSQL stopped while starting: see {self.log}"))
        time.sleep(0.2)  # the processes of a killed server are still on their way out

    def _options(self) -> dict[str, str]:
        return self.settings | {"unix_socket_directories": str(self._socket_directory())}

    def _write_configuration(self) -> None:
        sockets = self._socket_directory()
        sockets.mkdir(mode=0o700, exist_ok=True)
        self.account.own(sockets)
        if sockets.is_symlink() or sockets.stat().st_uid != self.account.uid:
            raise CannotStart(f"{sockets} belongs to another user: remove it.")
        ident = f"supervisor {accounts.own_name()} {SUPERUSER}\n"
        for name, text in (("pg_hba.conf", HBA), ("pg_ident.conf", ident)):
            (self._cluster() / name).write_text(text)
            self.account.own(self._cluster() / name)

    def _clear_stale_locks(self) -> None:
        """PostgreSQL clears a lock whose pid is gone; it gives up on a zombie, a reused pid or a torn file."""
        for lock in (self._cluster() / "postmaster.pid", self._socket_directory() / f"{SOCKET}.lock"):
            if lock.exists() and not self._is_ours(first_number(lock) or 0):
                lock.unlink(missing_ok=True)

    def _is_ours(self, pid: int) -> bool:
        words = identities.arguments(pid) if pid else []
        return bool(words) and Path(words[0]).name == "postgres" and str(self._cluster()) in words


def first_number(file: Path) -> int | None:
    """Return the number in the file's first line; None when there is no file or it is torn."""
    try:
        return abs(int(file.read_text().split("\n", 1)[0]))
    except (FileNotFoundError, ValueError):
        return None


def environment() -> dict[str, str]:
    """Return the environment of PostgreSQL's programs: nothing of ours."""
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC", "HOME": "/"}


def reason(output: str, otherwise: str) -> str:
    """Return one sentence for what PostgreSQL's programs wrote."""
    if "No space left on device" in output:
        return "The disk is full: free some space and start again."
    lines = [line for line in output.splitlines() if "FATAL" in line or "error:" in line]
    return f"{otherwise} ({lines[-1].strip()})." if lines else f"{otherwise}."
