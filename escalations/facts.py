"""Why a verb of an escalation did not happen; each is one sentence that a page can show."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any


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


DID = {  # a decision's kind → what whoever took it did
    "approve": "approved {}",
    "take_over": "took {} over",
    "reject": "rejected {}",
    "answer": "answered {}",
    "retry": "had {} run again",
    "close": "closed {}",
    "withdraw": "withdrew {}",
    "expire": "let {} expire",
    "settle": "settled {}",
    "adopt": "had {} taken over from the provider",
    "resend": "had {} sent again",
    "settle_rejected": "settled {} as refused",
    "compensate": "marked {} as put right",
    "refund": "had {} refunded",
    "replay_thread": "had the conversation of {} replayed",
}


class AlreadyDecided(Fact):
    """Somebody was first."""

    def __init__(self, *, kind: str, name: str, at: datetime | None) -> None:
        super().__init__(f"Already decided by {name}.")
        self.kind, self.name, self.at = kind, name, at

    def deed(self, it: str = "it") -> str:
        """Return what they did, in words that follow on their name."""
        return DID.get(self.kind, "decided {}").format(it)


class HeldByAnother(Fact):
    """Another reviewer's claim is valid."""

    def __init__(self, *, name: str, until: datetime) -> None:
        super().__init__(f"{name} holds this escalation.")
        self.name, self.until = name, until


class NotAllowed(Fact):
    """This kind of escalation does not take this decision."""

    def __init__(self, *, decision: str) -> None:
        super().__init__(f"“{decision.replace('_', ' ')}” is not possible here.")


class NotReady(Fact):
    """What would be signed cannot be: it was not run for real yet, or it would not go through."""

    def __init__(self, *, outcome: str | None) -> None:
        super().__init__(
            "What would happen is still being worked out. Wait for the preview."
            if outcome is None
            else "This cannot be signed: run for real, it did not go through. Change it, or ask for another preview."
        )
        self.outcome = outcome


class OwnEdit(Fact):
    """The editor of a revision signs it only when it lowers and the limits allow it."""

    def __init__(self) -> None:
        super().__init__("You changed this, and it needs another reviewer's signature. Yours is enough only for lower amounts.")


class SignedAlready(Fact):
    """The same person does not count twice."""

    def __init__(self) -> None:
        super().__init__("You have signed this already. Another reviewer has to sign it too.")


class NotTheirs(Fact):
    """Only somebody who asked for it withdraws it."""

    def __init__(self) -> None:
        super().__init__("Only somebody who wrote in this conversation can withdraw its request.")


class NothingChanged(Fact):
    """An edit that is the same as what it edits."""

    def __init__(self) -> None:
        super().__init__("Nothing was changed.")


class EditRefused(Fact):
    """The changed calls are not sound. `faults` say where: call index, field (empty: the whole call), sentence."""

    def __init__(self, *, faults: Sequence[Any]) -> None:
        super().__init__(faults[0].sentence if faults else "At least one call has to stay.")
        self.faults = tuple(faults)


class NoSuchReviewer(Fact):
    """Only an active reviewer can be given an escalation."""

    def __init__(self) -> None:
        super().__init__("Choose an active reviewer.")


class NotThen(Fact):
    """A time to sleep until that makes no sense."""

    def __init__(self) -> None:
        super().__init__("Choose a time in the future, within seven days and before this expires.")


class OwnRequest(Fact):
    """Nobody approves their own request."""

    def __init__(self) -> None:
        super().__init__("Nobody approves their own request. Another reviewer has to.")


class OwnEffect(Fact):
    """Nobody settles what they asked for."""

    def __init__(self) -> None:
        super().__init__("You asked for this in its conversation. Another reviewer has to settle it.")


class NotPossibleNow(Fact):
    """What an exit is about does not allow it any more, or something else was asked of it and is not done yet."""

    def __init__(self, *, decision: str) -> None:
        super().__init__(
            f"The message does not allow “{decision.replace('_', ' ')}” any more, or something else was asked of it."
        )


class OwnAnswer(Fact):
    """Nobody approves what the agent made of their own answer."""

    def __init__(self) -> None:
        super().__init__("The agent proposes this on your answer. Another reviewer has to approve it.")


class TextMissing(Fact):
    """This decision needs words."""

    def __init__(self, *, decision: str) -> None:
        words = {"reject": "Give a reason: the agent and the staff member will read it.", "answer": "Write the answer."}
        super().__init__(words.get(decision, "Give a reason: it is kept with the decision."))


class Outdated(Fact):
    """Another revision or preview than the newest was shown."""

    def __init__(self) -> None:
        super().__init__("The proposal or its preview changed since you looked. Nothing was decided.")
