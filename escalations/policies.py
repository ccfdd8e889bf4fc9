"""What the state of an escalation allows; pure tables, no person and no clock in here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Amount = Callable[[Mapping[str, Any]], tuple[int, str] | None]

# (state, verb) → the state afterwards. What is not in here is refused.
TRANSITIONS: Mapping[tuple[str, str], str] = {
    ("open", "claim"): "claimed",
    ("open", "reassign"): "claimed",
    ("open", "snooze"): "open",
    ("open", "wake"): "open",
    ("open", "revise"): "open",
    ("open", "sign"): "open",  # not the last signature that it needs: that one decides
    ("open", "decide"): "decided",
    ("open", "expire"): "expired",
    ("open", "settle"): "done",  # it came right by itself
    ("claimed", "claim"): "claimed",  # renewed by its holder, or taken over
    ("claimed", "reassign"): "claimed",
    ("claimed", "release"): "open",
    ("claimed", "snooze"): "open",
    ("claimed", "wake"): "claimed",
    ("claimed", "revise"): "claimed",
    ("claimed", "sign"): "open",  # somebody else has to look now
    ("claimed", "decide"): "decided",
    ("claimed", "expire"): "expired",
    ("claimed", "settle"): "done",
    ("decided", "resume"): "resumed",
    ("decided", "finish"): "done",  # no thread waits for it
    ("expired", "resume"): "expired",  # the thread takes the system's decision; the escalation stays expired
    ("resumed", "finish"): "done",
}
MESSAGE_EXITS = ("adopt", "resend", "settle_rejected", "compensate", "refund")  # of an outbox message: its worker does them
EXITS = (*MESSAGE_EXITS, "replay_thread")  # ways to settle a disagreement
# kind → what a person may decide about it. `edit` and `drop` make a new revision, which `approve` or `take_over` is for.
# - approval: the calls wait and nothing ran. There is nothing to retry; and closing would leave them without a word, which is
#   what `reject` is for.
# - rollbacks: the model has read that its calls failed. There is nothing to reject; approving is for what a person changed,
#   since the same calls again are `retry`.
# - asked, budget: nothing is proposed that could be approved, changed, taken over, rejected or run again.
# - infrastructure: a step that could not run (before answers) or a model that could not be asked (after answers, no calls).
#   The same again is `retry`; with no way out, a step that can never run would wait for ever, hence `close`.
# - rejected_payment: nobody waits for an answer; what can be done is done in the conversation.
# - unknown_outcome, dirty_state: settled at the reconcile desk, by one of the exits that fit what it is about.
DECISIONS: Mapping[str, tuple[str, ...]] = {
    "approval": ("approve", "edit", "drop", "reject", "answer", "take_over", "withdraw"),
    "rollbacks": ("answer", "retry", "approve", "edit", "drop", "take_over", "close", "withdraw"),
    "asked": ("answer", "close", "withdraw"),
    "infrastructure": ("retry", "answer", "approve", "edit", "drop", "take_over", "close", "withdraw"),
    "budget": ("answer", "close", "withdraw"),
    "unknown_outcome": ("close", *EXITS),
    "rejected_payment": ("close",),
    "dirty_state": ("close", *EXITS),
}
OF_MESSAGES = "outbox.messages"  # the check of messages themselves; what a settled one asked by itself names none
RECONCILED = frozenset({"unknown_outcome", "dirty_state"})  # kinds that the reconcile desk is for
PROPOSING = frozenset({"approval", "rollbacks", "infrastructure"})  # kinds whose calls can be changed by a person
REVISING = frozenset({"edit", "drop", "take_over"})  # made of a new revision
SIGNED = frozenset({"approve", "take_over"})  # kinds of decisions that signatures complete
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
# kind → hours until the system decides for want of a person. What is about money that may have moved waits for ever.
EXPIRES: Mapping[str, int] = {"approval": 24, "rollbacks": 72, "asked": 72, "budget": 72}
NEEDS_TEXT = frozenset({"reject", "answer", *EXITS})


def sources(verb: str) -> list[str]:
    """Return the states from which the verb is allowed."""
    return [state for state, known in TRANSITIONS if known == verb]


def target(*, state: str, verb: str) -> str | None:
    """Return the state after the verb; None when the state does not allow it."""
    return TRANSITIONS.get((state, verb))


def allowed_decisions(*, kind: str, state: str, payload: Mapping[str, Any], revision: int = 0) -> tuple[str, ...]:
    """Return what a person may decide now; `revision` is the number of the newest one.

    Only what proposes calls can be changed, and only what was changed is approved where the calls as they are would be retried.
    """
    if (state, "decide") not in TRANSITIONS:
        return ()
    return tuple(name for name in DECISIONS[kind] if _fits(name, kind=kind, payload=payload, revision=revision))


def exits(payload: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ways to settle what the payload is about; whether a message still allows them is asked of the outbox."""
    if "exits" in payload:
        return tuple(payload["exits"])
    return MESSAGE_EXITS if payload.get("message_id") else ()


def is_of_message(*, object: str, payload: Mapping[str, Any]) -> bool:  # noqa: A002 - the column's name
    """Return whether a disagreement is about an outbox message itself, not about books that differ from it."""
    return object.startswith("message:") and payload.get("check", OF_MESSAGES) == OF_MESSAGES


def _fits(name: str, *, kind: str, payload: Mapping[str, Any], revision: int) -> bool:
    if name in EXITS:
        return name in exits(payload)
    if name == "close" and kind == "dirty_state":
        return not payload.get("check")  # what a scan found is there until it is settled
    if name in REVISING | SIGNED and not payload.get("calls"):
        return False
    if name == "drop":
        return len(payload["calls"]) > 1
    return name != "approve" or kind == "approval" or revision > 0


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How a person stands to an escalation: what forbids a decision to one and not to another."""

    asked: bool = False  # whoever asked for it, or wrote a message that the agent has read
    answered: bool = False  # told the agent, in answer to its question, what it proposes now
    held_by_another: bool = False  # somebody else's claim is valid
    edited: bool = False  # is the author of the newest revision
    lowers: bool = False  # that revision only lowers
    allowed: bool = False  # and the limits allow what its newest preview shows


def refusal(
    decision: str, *, kind: str, state: str, payload: Mapping[str, Any], revision: int, as_person: bool, standing: Standing
) -> str | None:
    """Return the name of the fact that keeps a reviewer from a decision, or None; of whoever asked, from withdrawing."""
    if (state, "decide") not in TRANSITIONS:
        return "AlreadyDecided"
    possible = allowed_decisions(kind=kind, state=state, payload=payload, revision=revision)
    if decision == "withdraw":
        return "NotAllowed" if decision not in possible else None if standing.asked else "NotTheirs"
    if standing.held_by_another:
        return "HeldByAnother"
    if decision == "approve" and as_person and "take_over" in possible:
        return _unsigned(standing)  # signing what was taken over
    if decision not in possible:
        return "NotAllowed"
    if decision in EXITS:
        return "OwnEffect" if standing.asked else None
    return _unsigned(standing) if decision == "approve" else None


def _unsigned(standing: Standing) -> str | None:
    """Return the name of the fact that keeps a reviewer from signing, or None."""
    if standing.asked:
        return "OwnRequest"
    if standing.answered:
        return "OwnAnswer"
    return "OwnEdit" if standing.edited and not (standing.lowers and standing.allowed) else None


def lowers(proposed: Sequence[Mapping[str, Any]], calls: Sequence[Mapping[str, Any]], *, amount: Amount) -> bool:
    """Return whether every change of what the agent proposed drops a call or lowers the amount that it moves.

    `amount` says what a call moves: minor units and currency. A changed argument that is no amount is not lowering.
    """
    before = {call["index"]: call for call in proposed}
    return all(_same(before[call["index"]], call) or _lower(before[call["index"]], call, amount=amount) for call in calls)


def _same(before: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    return bool(before["arguments"] == call["arguments"])


def _lower(before: Mapping[str, Any], call: Mapping[str, Any], *, amount: Amount) -> bool:
    old, new = before["arguments"] or {}, call["arguments"] or {}
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    moved, moves = amount(before), amount(call)
    if moved is None or moves is None or not all(name.endswith("_minor") for name in changed):
        return False
    return moved[1] == moves[1] and moves[0] < moved[0]


def waived(verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what an approval waives: exactly the verdicts that held, at the values that were shown."""
    return [
        {"call_index": verdict["call_index"], "rule": verdict["rule"], "measured": verdict["measured"]}
        for verdict in verdicts
        if verdict["action"] == "hold"
    ]
