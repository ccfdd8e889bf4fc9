"""The state, icon and word that a page shows for an outcome: always all three, always the same."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Mark:
    """`state` gives the colour; the word says it too."""

    state: str
    icon: str
    word: str


READ = Mark(state="queued", icon="eye", word="Read")
ASKED = Mark(state="info", icon="messages-square", word="Asked")
LEFT_OPEN = Mark(state="uncertain", icon="circle-dashed", word="Left open")
ATTEMPTS = {
    "committed": Mark(state="applied", icon="check", word="Applied"),
    "rolled_back": Mark(state="undone", icon="undo-2", word="Undone"),
    "refused": Mark(state="failed", icon="ban", word="Refused before running"),
    "held": Mark(state="held", icon="hand", word="Held"),
    "rejected": Mark(state="failed", icon="x", word="Rejected"),
    "drifted": Mark(state="held", icon="history", word="Stopped: changed since"),
    "infrastructure": Mark(state="failed", icon="database", word="Infrastructure"),
    "lost_lease": Mark(state="undone", icon="unlink", word="Lost its lease"),
    "bug": Mark(state="failed", icon="triangle-alert", word="Bug"),
}
CALLS = {
    "applied": Mark(state="applied", icon="check", word="Applied"),
    "failed": Mark(state="failed", icon="x", word="Failed"),
    "undone": Mark(state="undone", icon="undo-2", word="Not applied: undone"),
    "never_ran": Mark(state="undone", icon="circle-dashed", word="Not applied: never ran"),
    "invalid": Mark(state="failed", icon="ban", word="Refused before running"),
    "held": Mark(state="held", icon="hand", word="Held"),
    "waits": Mark(state="queued", icon="circle-dashed", word="Waits with its batch"),
    "rejected": Mark(state="failed", icon="x", word="Rejected"),
    "dropped": Mark(state="undone", icon="x", word="Removed by a reviewer"),
    "asked": ASKED,
    "left_open": LEFT_OPEN,
    "stopped": Mark(state="undone", icon="undo-2", word="Not applied: stopped"),
}
# A person's decision, and how far what it is about has come.
DECISIONS = {
    "approve": Mark(state="applied", icon="check", word="Approved"),
    "reject": Mark(state="failed", icon="x", word="Rejected"),
    "answer": Mark(state="info", icon="messages-square", word="Answered"),
    "retry": Mark(state="info", icon="rotate-ccw", word="Retried"),
    "close": Mark(state="queued", icon="x", word="Closed"),
    "expire": Mark(state="undone", icon="timer", word="Expired undecided"),
    "settle": Mark(state="applied", icon="check", word="Settled"),
    "take_over": Mark(state="applied", icon="user-round-check", word="Taken over"),
    "withdraw": Mark(state="undone", icon="undo-2", word="Withdrawn"),
    "adopt": Mark(state="applied", icon="check", word="Adopted"),
    "resend": Mark(state="info", icon="rotate-ccw", word="Sent again"),
    "settle_rejected": Mark(state="failed", icon="ban", word="Settled as refused"),
    "compensate": Mark(state="applied", icon="user-round-check", word="Put right elsewhere"),
    "refund": Mark(state="info", icon="undo-2", word="Refunded"),
    "replay_thread": Mark(state="info", icon="rotate-ccw", word="Replayed"),
}
PROGRESS = {
    "open": Mark(state="held", icon="clock", word="Open"),
    "claimed": Mark(state="held", icon="user-round-check", word="Claimed"),
    "decided": Mark(state="held", icon="clock", word="Not run yet"),
    "resumed": Mark(state="queued", icon="circle-dashed", word="Runs"),
    "done": Mark(state="applied", icon="check", word="Finished"),
    "expired": Mark(state="undone", icon="timer", word="Expired"),
}


def of_attempt(outcome: str | None, *, does: str = "write") -> Mark:
    """Return the mark of an attempt; without an outcome it was left open. `does`: write, read or ask."""
    if outcome == "committed" and does != "write":
        return ASKED if does == "ask" else READ
    return ATTEMPTS[outcome] if outcome else LEFT_OPEN


def of_call(fate: str, *, does: str = "write") -> Mark:
    """Return the mark of one call of an attempt."""
    if fate == "applied" and does != "write":
        return ASKED if does == "ask" else READ
    return CALLS[fate]
