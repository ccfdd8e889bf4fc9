"""Which processes an instance has started, so that a later `up`, `down` or `status` finds them and nothing else."""

from dataclasses import asdict, dataclass, field
from pathlib import Path

from sandbox.servers import identities
from sandbox.servers.identities import Identity
from sandbox.supervisor import files


@dataclass
class Record:
    """The content of processes.json. `state` is what the supervisor said last: starting, ready or stopping."""

    file: Path
    state: str = "down"
    supervisor: Identity | None = None
    children: dict[str, Identity] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Path) -> "Record":
        """Return what the data directory says, which is nothing when nothing was ever started."""
        file = data / "processes.json"
        found = files.read(file)
        return cls(
            file=file,
            state=found.get("state", "down"),
            supervisor=Identity(**found["supervisor"]) if found.get("supervisor") else None,
            children={name: Identity(**entry) for name, entry in found.get("children", {}).items()},
            restarts=found.get("restarts", {}),
        )

    def write(self) -> None:
        """Keep it on disk."""
        content = asdict(self)
        del content["file"]
        files.write(self.file, content)

    def supervised(self) -> bool:
        """Say whether the supervisor that wrote this still runs."""
        return self.supervisor is not None and identities.living(self.supervisor) is not None
