"""What a settled outbox message asks of a person: a refused payment, an outcome nobody knows, one the provider takes back."""

from collections.abc import Mapping
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from escalations import lifecycle
from outbox import handlers

STATE = """
SELECT m.state, m.outcome_source, m.topic, m.repeat, m.payload, m.subject, m.thread, m.ai_message_id, m.refusal,
    m.compensation_needed, e.on_behalf_of,
    EXISTS (SELECT FROM public.escalations_escalation q
            WHERE q.object = 'message:' || m.id AND q.state IN ('open', 'claimed')) AS asked
FROM public.outbox_message m LEFT JOIN public.ledger_execution e
    ON e.thread = m.thread AND e.ai_message_id = m.ai_message_id AND e.call_index = m.call_index
WHERE m.id = %s
"""

# The state in which an effect came out while people were asked about it → the system's answer to the question.
CAME_RIGHT = {
    "succeeded": "It is known by now: the payment provider carried it out.",
    "rejected": "It is known by now: the payment provider did not carry it out.",
    "cancelled": "It was withdrawn before anything was sent.",
    "accepted": "The payment provider has it, and has not finished yet.",
}


def open_if_needed(conn: Connection[Any], *, message: Mapping[str, Any], outcome: Any) -> None:
    """Open an escalation for a refused payment, a dead message, or an effect that may have happened twice.

    One that came right after a question about it was opened answers that question. Runs as the outbox login inside the
    settling transaction; a second call for the same message changes nothing.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(STATE, (message["id"],)).fetchone()
    assert row is not None
    if row["repeat"] == "harmless":  # a notice that nobody gets is for admins: asking people about it would send more of them
        return
    kind = kind_of(state=row["state"], topic=row["topic"], compensation_needed=row["compensation_needed"])
    if kind == "rejected_payment" and known(conn, message_id=message["id"], kind=kind):
        return
    if row["asked"] and kind != "unknown_outcome" and row["state"] in CAME_RIGHT:
        lifecycle.settle(conn, object=f"message:{message['id']}", text=CAME_RIGHT[row["state"]])
    if kind is None or (kind == "rejected_payment" and row["outcome_source"] == "person"):  # who ended it knows
        return
    lifecycle.open(
        conn,
        kind=kind,
        object=f"message:{message['id']}",
        payload=payload(kind=kind, message_id=message["id"], row=row),
        thread=row["thread"],
        subject=row["subject"],
        requested_by=row["on_behalf_of"],
        ai_message_id=row["ai_message_id"],
    )


def open_contradicted(conn: Connection[Any], *, message: Mapping[str, Any], concern: str, known: bool = False) -> None:
    """Ask a person about what came of a message otherwise than it should, such as a refund that failed later.

    `concern` says it in a sentence; `known`, that a reviewer has just brought it up. Runs as the outbox login; a second call
    for the same message changes nothing.
    """
    if known:
        return
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(STATE, (message["id"],)).fetchone()
    assert row is not None
    lifecycle.open(
        conn,
        kind="dirty_state",
        object=f"message:{message['id']}",
        payload=payload(kind="dirty_state", message_id=message["id"], row=row)
        | {"reason": concern, "exits": ["refund"] if row["topic"] in handlers.can_give_back() else []},
        thread=row["thread"],
        subject=row["subject"],
        requested_by=row["on_behalf_of"],
        ai_message_id=row["ai_message_id"],
    )


def kind_of(*, state: str, topic: str, compensation_needed: bool) -> str | None:
    """Return the kind of escalation that a message in this state needs, or None. An uncertain one is looked up first."""
    if state == "dead" or compensation_needed:
        return "unknown_outcome"
    return "rejected_payment" if state == "rejected" and topic in handlers.refusals_ask_person() else None


def known(conn: Connection[Any], *, message_id: int, kind: str) -> bool:
    """Return whether this was put to a person before, decided or not: what is final is asked about once."""
    found = conn.execute(
        "SELECT 1 FROM public.escalations_escalation WHERE object = %s AND kind = %s", (f"message:{message_id}", kind)
    ).fetchone()
    return found is not None


def payload(*, kind: str, message_id: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what reviewers are shown: what was to be sent, in words, and why they have to look."""
    about = handlers.sentence(topic=row["topic"], payload=row["payload"])
    moved = {name: row["payload"][name] for name in ("amount_minor", "currency") if name in row["payload"]}
    why = reason(kind=kind, refusal=row["refusal"], topic=row["topic"])
    return {"reason": why, "about": about, "message_id": message_id, "phase": "after_answers", **moved}


def reason(*, kind: str, refusal: str | None, topic: str) -> str:
    """Return why a person has to look, in words."""
    if kind == "rejected_payment":
        why = f": {refusal}".replace("_", " ") if refusal else ""
        return f"The payment provider refused it{why}. {handlers.if_refused(topic)}"
    return "It is not known whether the payment provider carried it out."
