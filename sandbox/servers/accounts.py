"""Which account of the operating system a server runs as: PostgreSQL refuses to run as root."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sandbox.servers import CannotStart

UNPRIVILEGED = "nobody"


@dataclass(frozen=True)
class Account:
    """A user and group; `changes` is true when it is not the one that this process runs as."""

    uid: int
    gid: int
    changes: bool

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments that make `subprocess` run a program as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.changes else {}

    def own(self, path: Path) -> None:
        """Give the file or directory to this account."""
        if self.changes:
            os.chown(path, self.uid, self.gid)

    def may_enter(self, directory: Path) -> bool:
        """Say whether this account can get to the directory, parents included."""
        asked = ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(directory)]
        return subprocess.run(asked, capture_output=True, cwd="/", **self.arguments()).returncode == 0


@cache
def for_servers() -> Account:
    """Return the account that may run PostgreSQL: this one, or an unprivileged one when this is root."""
    if os.geteuid() != 0:
        return Account(uid=os.geteuid(), gid=os.getegid(), changes=False)
    try:
        entry = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        raise CannotStart(
            f"PostgreSQL does not run as root and there is no account {UNPRIVILEGED!r}: start as an ordinary user."
        ) from None
    return Account(uid=entry.pw_uid, gid=entry.pw_gid, changes=True)


def own_name() -> str:
    """Return the name of the account that this process runs as."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise CannotStart(f"The user {os.geteuid()} has no name on this machine: PostgreSQL needs one.") from None


def check_owner(directory: Path) -> None:
    """Refuse a directory that another user made: what is in it could not be read or written."""
    if directory.exists() and os.geteuid() not in (0, directory.stat().st_uid):
        raise CannotStart(f"{directory} belongs to another user: choose another --data or start as that user.")
