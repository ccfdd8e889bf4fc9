"""The verbs of an escalation, one transaction each; bells are rung by the caller, after COMMIT."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from escalations import decisions, facts, policies, rows
from ledger import wiring

CLAIM = timedelta(minutes=15)
Calls = Sequence[Mapping[str, Any]]


def open(  # noqa: A001 - the word for it
    conn: Connection[Any],
    *,
    kind: str,
    object: str,  # noqa: A002 - the column's name
    payload: Mapping[str, Any],
    thread: UUID | None = None,
    interrupt_id: str | None = None,
    subject: int | None = None,
    requested_by: int | None = None,
    ai_message_id: str | None = None,
    generation: int = 0,
    calls: Calls | None = None,
    verdicts: Calls | None = None,
    policy_version: str = "",
) -> int:
    """Open an escalation and return its id; else the id of the one of this interrupt, or of the one open for this object.

    Raises `facts.StillOpen` when the object's open escalation belongs to another interrupt.
    """
    with conn.transaction():
        row = conn.execute(
            "INSERT INTO public.escalations_escalation"
            " (kind, object, payload, thread, interrupt_id, subject, requested_by, ai_message_id, generation, due_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, statement_timestamp() + %s) ON CONFLICT DO NOTHING RETURNING id",
            (
                *(kind, object, Jsonb(dict(payload)), thread, interrupt_id, subject, requested_by, ai_message_id, generation),
                timedelta(minutes=policies.TARGETS[kind]),
            ),
        ).fetchone()
        if row is None:
            return existing(conn, interrupt_id=interrupt_id, object=object)
        escalation = int(row[0])
        if calls is not None:
            propose(conn, escalation=escalation, calls=calls, verdicts=verdicts or [], policy_version=policy_version)
        tell(conn, escalation=escalation)
    return escalation


def existing(conn: Connection[Any], *, interrupt_id: str | None, object: str) -> int:  # noqa: A002 - as above
    """Return the escalation that kept a new one from being opened."""
    row = conn.execute(
        "SELECT id, interrupt_id FROM public.escalations_escalation"
        " WHERE interrupt_id = %s OR (object = %s AND state IN ('open', 'claimed'))"
        " ORDER BY (interrupt_id IS NOT DISTINCT FROM %s) DESC LIMIT 1",
        (interrupt_id, object, interrupt_id),
    ).fetchone()
    if row is None or (interrupt_id is not None and row[1] != interrupt_id):
        raise facts.StillOpen(escalation=row and row[0], object=object)
    return int(row[0])


def propose(conn: Connection[Any], *, escalation: int, calls: Calls, verdicts: Calls, policy_version: str) -> None:
    """Store what the agent proposes as revision 0, with the hash of exactly that."""
    canonical = json.dumps(list(calls), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    conn.execute(
        "INSERT INTO public.escalations_revision (escalation_id, number, calls, calls_hash)"
        " VALUES (%s, 0, %s, sha256(convert_to(%s, 'UTF8')))",
        (escalation, Jsonb(list(calls)), canonical),
    )


def claim(conn: Connection[Any], *, escalation: int, user: int, take_over: bool = False) -> None:
    """Hold an escalation for 15 minutes, or renew one's own claim; with `take_over`, from whoever holds it.

    Raises `NotFound`, `AlreadyDecided`, `HeldByAnother`.
    """
    with conn.transaction():
        row = rows.locked(conn, escalation=escalation, verb="claim")
        if not take_over:
            rows.check_free(conn, row=row, user=user)
        conn.execute(
            "UPDATE public.escalations_escalation SET state = 'claimed', claimed_by = %s, claimed_until = now() + %s"
            " WHERE id = %s",
            (user, CLAIM, escalation),
        )


def claim_next(conn: Connection[Any], *, user: int) -> int | None:
    """Claim the open escalation with the oldest target that nobody holds, and return it; two reviewers never get the same."""
    with conn.transaction():
        row = conn.execute(
            "SELECT id FROM public.escalations_escalation"
            " WHERE (state = 'open' OR (state = 'claimed' AND claimed_until <= now())) AND requested_by IS DISTINCT FROM %s"
            " ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED",
            (user,),
        ).fetchone()
        if row:
            claim(conn, escalation=row[0], user=user)
    return int(row[0]) if row else None


def release(conn: Connection[Any], *, escalation: int, user: int) -> None:
    """Give one's own claim back; nothing changes when it is somebody else's or nobody's by now."""
    conn.execute(
        "UPDATE public.escalations_escalation SET state = 'open', claimed_by = NULL, claimed_until = NULL"
        " WHERE id = %s AND claimed_by = %s AND state = ANY(%s)",
        (escalation, user, policies.sources("release")),
    )


def decide(conn: Connection[Any], *, escalation: int, kind: str, text: str, user: int, revision: int = 0) -> decisions.Decision:
    """Take the one decision, with its signature when it approves, and tell the conversation; all in one commit.

    The caller rings `agent.drive` with the thread after COMMIT. Raises `NotFound`, `AlreadyDecided` (with the winner's
    name), `HeldByAnother`, `NotAllowed`, `OwnRequest`, `TextMissing`, `Outdated`.
    """
    text = text.strip()
    with conn.transaction():
        row = rows.locked(conn, escalation=escalation, verb="decide")
        rows.check_free(conn, row=row, user=user)
        decisions.check(row=row, kind=kind, text=text)
        signed = decisions.sign(conn, row=row, user=user, number=revision) if kind == "approve" else None
        decision = decisions.record(conn, row=row, kind=kind, text=text, user=user, signed=signed)
        if row["interrupt_id"] is None:  # no thread waits for it
            end(conn, escalation=escalation, state="done")
        else:
            conn.execute(
                "UPDATE public.escalations_escalation SET state = 'decided', decided_at = now() WHERE id = %s", (escalation,)
            )
        tell(conn, escalation=escalation, decision=decision)
    return decision


def expire(conn: Connection[Any], *, escalation: int, text: str) -> decisions.Decision:
    """Take the system's decision: nobody decided in time. Raises `NotFound`, `AlreadyDecided`."""
    with conn.transaction():
        return _decided_by_system(conn, escalation=escalation, kind="expire", text=text)


def settle(conn: Connection[Any], *, object: str, text: str) -> decisions.Decision | None:  # noqa: A002 - as above
    """Take the system's decision about what came right by itself; None when nobody is asked about the object (any more)."""
    with conn.transaction():
        row = conn.execute(
            "SELECT id FROM public.escalations_escalation WHERE object = %s AND state = ANY(%s) FOR UPDATE",
            (object, policies.sources("settle")),
        ).fetchone()
        return row and _decided_by_system(conn, escalation=row[0], kind="settle", text=text)


def _decided_by_system(conn: Connection[Any], *, escalation: int, kind: str, text: str) -> decisions.Decision:
    """Record a decision of no person, which is named like its verb, and end the escalation with it."""
    row = rows.locked(conn, escalation=escalation, verb=kind)
    decision = decisions.record(conn, row=row, kind=kind, text=text, user=None)
    end(conn, escalation=escalation, state=policies.TRANSITIONS[row["state"], kind])
    tell(conn, escalation=escalation, decision=decision)
    return decision


def end(conn: Connection[Any], *, escalation: int, state: str) -> None:
    """Close an escalation at the moment of its decision."""
    conn.execute(
        "UPDATE public.escalations_escalation SET state = %s, decided_at = now(), closed_at = now() WHERE id = %s",
        (state, escalation),
    )


def tell(conn: Connection[Any], *, escalation: int, decision: decisions.Decision | None = None) -> None:
    """Call what settings plug in, inside this transaction, with the escalation as it is now."""
    row = rows.found(conn, escalation=escalation)
    for listener in wiring.plugged_all("BACKSTOP_ON_ESCALATION"):
        listener(conn, escalation=row | {"decision": decision.as_resume_value() if decision else None})


def decisions_for(conn: Connection[Any], *, interrupt_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return what waiting interrupts are resumed with, by interrupt id; an undecided one is not in it."""
    found = conn.execute(
        "SELECT e.interrupt_id, d.id, d.kind, d.text, d.decided_by, coalesce(u.username, 'the system'), d.waived::text"
        " FROM public.escalations_escalation e JOIN public.escalations_decision d ON d.escalation_id = e.id"
        " LEFT JOIN public.auth_user u ON u.id = d.decided_by WHERE e.interrupt_id = ANY(%s)",
        (list(interrupt_ids),),
    ).fetchall()
    names = ("decision", "kind", "text", "decided_by", "name")
    return {row[0]: dict(zip(names, row[1:6], strict=True)) | {"waived": json.loads(row[6])} for row in found}


def mark_resumed(conn: Connection[Any], *, interrupt_ids: Sequence[str]) -> None:
    """Note that the thread took these decisions; an expired escalation stays expired."""
    conn.execute(
        "UPDATE public.escalations_escalation"
        " SET resumed_at = now(), state = CASE state WHEN 'decided' THEN 'resumed' ELSE state END"
        " WHERE interrupt_id = ANY(%s) AND resumed_at IS NULL AND state = ANY(%s)",
        (list(interrupt_ids), policies.sources("resume")),
    )


def mark_done(conn: Connection[Any], *, thread: UUID) -> None:
    """Close the escalations whose decision the thread took and is finished with."""
    conn.execute(
        "UPDATE public.escalations_escalation SET state = 'done', closed_at = now() WHERE thread = %s AND state = 'resumed'",
        (thread,),
    )
