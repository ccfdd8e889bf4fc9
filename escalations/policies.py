"""What the state of an escalation allows; pure tables, no person and no clock in here."""

from collections.abc import Mapping, Sequence
from typing import Any

# (state, verb) → the state afterwards. What is not in here is refused.
TRANSITIONS: Mapping[tuple[str, str], str] = {
    ("open", "claim"): "claimed",
    ("open", "decide"): "decided",
    ("open", "expire"): "expired",
    ("open", "settle"): "done",  # it came right by itself
    ("claimed", "claim"): "claimed",  # renewed by its holder, or taken over
    ("claimed", "release"): "open",
    ("claimed", "decide"): "decided",
    ("claimed", "expire"): "expired",
    ("claimed", "settle"): "done",
    ("decided", "resume"): "resumed",
    ("decided", "finish"): "done",  # no thread waits for it
    ("expired", "resume"): "expired",  # the thread takes the system's decision; the escalation stays expired
    ("resumed", "finish"): "done",
}
# kind → the decisions that a person may take about it.
DECISIONS: Mapping[str, tuple[str, ...]] = {
    "approval": ("approve", "reject"),
    "rollbacks": ("answer", "retry", "close"),
    "asked": ("answer", "close"),
    "infrastructure": ("retry", "answer", "close"),  # without a way out, a step that can never run would wait for ever
    "budget": ("answer", "close"),
    "unknown_outcome": ("close",),
    "rejected_payment": ("close",),
    "dirty_state": ("close",),
}
# kind → minutes until somebody should have decided.
TARGETS: Mapping[str, int] = {
    "approval": 30,
    "rollbacks": 30,
    "asked": 30,
    "infrastructure": 60,
    "budget": 60,
    "unknown_outcome": 60,
    "rejected_payment": 60,
    "dirty_state": 240,
}
NEEDS_TEXT = frozenset({"reject", "answer"})


def sources(verb: str) -> list[str]:
    """Return the states from which the verb is allowed."""
    return [state for state, known in TRANSITIONS if known == verb]


def target(*, state: str, verb: str) -> str | None:
    """Return the state after the verb; None when the state does not allow it."""
    return TRANSITIONS.get((state, verb))


def allowed_decisions(*, kind: str, state: str, payload: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the decisions that are possible now. Before the model got its answers, nothing can be answered to it."""
    if (state, "decide") not in TRANSITIONS:
        return ()
    before_answers = kind == "infrastructure" and payload.get("phase") != "after_answers"
    return tuple(decision for decision in DECISIONS[kind] if not (before_answers and decision == "answer"))


def waived(verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what an approval waives: exactly the verdicts that held, at the values that were shown."""
    return [
        {"call_index": verdict["call_index"], "rule": verdict["rule"], "measured": verdict["measured"]}
        for verdict in verdicts
        if verdict["action"] == "hold"
    ]
