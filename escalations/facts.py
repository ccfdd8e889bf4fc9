"""Why a verb of an escalation did not happen; each is one sentence that a page can show."""

from datetime import datetime


class Fact(Exception):
    """Something about this escalation forbids what was asked. Nothing was changed."""


class NotFound(Fact):
    """There is no such escalation."""

    def __init__(self, *, escalation: int) -> None:
        super().__init__(f"There is no escalation E-{escalation}.")


class StillOpen(Fact):
    """Another interrupt's escalation is open for the same object."""

    def __init__(self, *, escalation: int | None, object: str) -> None:  # noqa: A002 - the column's name
        super().__init__(f"Escalation E-{escalation} is still open for {object}.")
        self.escalation = escalation


class AlreadyDecided(Fact):
    """Somebody was first."""

    def __init__(self, *, kind: str, name: str, at: datetime | None) -> None:
        super().__init__(f"Already decided by {name}.")
        self.kind, self.name, self.at = kind, name, at


class HeldByAnother(Fact):
    """Another reviewer's claim is valid."""

    def __init__(self, *, name: str, until: datetime) -> None:
        super().__init__(f"{name} holds this escalation.")
        self.name, self.until = name, until


class NotAllowed(Fact):
    """This kind of escalation does not take this decision."""

    def __init__(self, *, decision: str) -> None:
        super().__init__(f"“{decision}” is not possible here.")


class OwnRequest(Fact):
    """Nobody approves their own request."""

    def __init__(self) -> None:
        super().__init__("Nobody approves their own request. Another reviewer has to.")


class TextMissing(Fact):
    """This decision needs words."""

    def __init__(self, *, decision: str) -> None:
        super().__init__(
            "Give a reason: the agent and the staff member will read it." if decision == "reject" else "Write the answer."
        )


class Outdated(Fact):
    """Another revision than the newest was shown."""

    def __init__(self) -> None:
        super().__init__("The proposal changed since you looked. Nothing was decided.")
