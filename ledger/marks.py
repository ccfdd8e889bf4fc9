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
    "asked": ASKED,
    "left_open": LEFT_OPEN,
    "stopped": Mark(state="undone", icon="undo-2", word="Not applied: stopped"),
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
