"""Settling a disagreement: a reviewer chooses one exit, and whoever can do it is asked in the same transaction."""

from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from escalations import acts, decisions, facts, lifecycle, policies, rows
from escalations.decisions import Decision
from ledger import wiring
from outbox import requests

SIGNERS = """
SELECT array_agg(DISTINCT by) FROM public.escalations_act
WHERE escalation_id = %s AND kind = 'signed' AND detail ->> 'exit' = %s AND by IS NOT NULL
"""
DECIDED = "UPDATE public.escalations_escalation SET state = 'decided', decided_at = now() WHERE id = %s"
OPEN_AGAIN = "UPDATE public.escalations_escalation SET state = 'open', claimed_by = NULL, claimed_until = NULL WHERE id = %s"


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What came of a choice: the decision, or one of the signatures that it needs."""

    decision: Decision | None
    signed: int
    needs: int


def choose(conn: Connection[Any], *, escalation: int, kind: str, text: str, user: int) -> Chosen:
    """Take one of the exits in the caller's transaction; above the limit, putting right by hand needs a second person.

    The caller rings `outbox.deliver`, or `agent.drive` for a thread. Raises `NotFound`, `AlreadyDecided` (with the winner's
    name), `HeldByAnother`, `NotAllowed`, `TextMissing`, `OwnEffect`, `SignedAlready`, `NotPossibleNow`.
    """
    text = text.strip()
    with conn.transaction():
        row = rows.locked(conn, escalation=escalation, verb="decide")
        rows.check_free(conn, row=row, user=user)
        _check(conn, row=row, kind=kind, text=text, user=user)
        needs = signatures_needed(conn, row=row, kind=kind)
        signed = _signed(conn, row=row, kind=kind, user=user, needs=needs)
        if signed < needs:
            acts.note(conn, escalation=escalation, kind="signed", by=user, detail={"exit": kind, "text": text})
            conn.execute(OPEN_AGAIN, (escalation,))
            lifecycle.tell(conn, escalation=escalation)
            return Chosen(decision=None, signed=signed, needs=needs)
        decision = decisions.record(conn, row=row, kind=kind, text=text, user=user, needs=needs if kind == "compensate" else None)
        _ask(conn, row=row, decision=decision, user=user)
        lifecycle.tell(conn, escalation=escalation, decision=decision)
    return Chosen(decision=decision, signed=signed, needs=needs)


def _check(conn: Connection[Any], *, row: rows.Row, kind: str, text: str, user: int) -> None:
    possible = policies.allowed_decisions(kind=row["kind"], state=row["state"], payload=row["payload"])
    if kind not in policies.EXITS or kind not in possible:
        raise facts.NotAllowed(decision=kind)
    if rows.has_asked(conn, row=row, user=user):
        raise facts.OwnEffect
    if not text:
        raise facts.TextMissing(decision=kind)


def signatures_needed(conn: Connection[Any], *, row: rows.Row, kind: str) -> int:
    """Return how many people have to say the same before it is decided."""
    amount, currency = row["payload"].get("amount_minor"), row["payload"].get("currency", "")
    if kind != "compensate" or not amount:
        return 1
    above = second_above(conn, currency=currency)
    return 2 if above is not None and amount > above else 1


def second_above(conn: Connection[Any], *, currency: str) -> int | None:
    """Return the amount in minor units above which a second reviewer has to sign; None: one is always enough."""
    found: int | None = wiring.plugged("BACKSTOP_SECOND_REVIEWER")(conn, currency=currency)
    return found


def _signed(conn: Connection[Any], *, row: rows.Row, kind: str, user: int, needs: int) -> int:
    """Return how many people will have signed with this one; raise when the same person has before and it needs another."""
    (before,) = conn.execute(SIGNERS, (row["id"], kind)).fetchone() or (None,)
    others = [person for person in before or [] if person not in (user, row["requested_by"])]
    if needs > 1 and not others and user in (before or []):
        raise facts.SignedAlready
    return len(others) + 1


def _ask(conn: Connection[Any], *, row: rows.Row, decision: Decision, user: int) -> None:
    """Ask the outbox worker for it; a thread is replayed by the agent's, who finds the decision; else it is a note, and done."""
    payload = row["payload"]
    about_message = decision.kind != "compensate" or policies.is_of_message(object=row["object"], payload=payload)
    if decision.kind != "replay_thread" and not (payload.get("message_id") and about_message):
        return lifecycle.end(conn, escalation=row["id"], state="done")
    if decision.kind != "replay_thread":
        asked = {"message": payload["message_id"], "kind": decision.kind, "reason": decision.text, "user": user}
        try:
            requests.ask(conn, **asked, escalation=row["id"])
        except requests.NotPossible:
            raise facts.NotPossibleNow(decision=decision.kind) from None
    conn.execute(DECIDED, (row["id"],))
    return None
