"""Waves: cases whose conversations stand at their points in one process together, until it is killed with all of them there."""

from dataclasses import dataclass, field
from typing import Any

from tests.matrix.cases import Case
from tests.matrix.talks import Talk

# How many threads of a process may stand still: half of them. Whoever speaks to the web server waits for it to answer.
MOST = {"outbox": 4, "agent": 8, "web": 1}


@dataclass(kw_only=True)
class Result:
    """What became of one case."""

    case: Case
    talk: Talk
    killed: bool = False
    again: bool = False  # a later kill hit it once more
    complaints: list[str] = field(default_factory=list)

    def mark(self, action: str) -> dict[str, Any]:
        """Return what the process says when the conversation has come to its point."""
        thread = self.case.whose(str(self.talk.thread))
        return {"point": self.case.point, "occurrence": self.case.occurrence, "action": action, "thread": thread}


@dataclass(kw_only=True)
class Wave:
    """What one kill hits."""

    part: str
    results: list[Result]

    @property
    def action(self) -> str:
        """Return what happens at the points: a single conversation is killed there by itself."""
        return "kill" if MOST[self.part] == 1 else "sleep"

    @property
    def fault(self) -> str:
        """Return what the process is armed with."""
        return ",".join(result.case.fault(str(result.talk.thread), action=self.action) for result in self.results)

    def takes(self, result: Result) -> bool:
        """Say whether one more would not be in the way of the others."""
        held = any(other.case.holds for other in self.results)
        return len(self.results) < MOST[self.part] and not (result.case.holds and held)


def of(results: list[Result], *, part: str) -> list[Wave]:
    """Return the waves of a part; only web has more than a few."""
    found: list[Wave] = []
    for result in [result for result in results if result.case.part == part]:
        wave = next((wave for wave in found if wave.takes(result)), None)
        if wave is None:
            found.append(wave := Wave(part=part, results=[]))
        wave.results.append(result)
    return found
