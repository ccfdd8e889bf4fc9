"""The verbs of an escalation, one transaction each; bells are rung by the caller, after COMMIT."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from escalations import acts, decisions, facts, policies, previews, questions, revisions, rows, signatures
from escalations.claims import claim, claim_next, reassign, release, snooze, wake_up
from escalations.resumptions import decisions_for, mark_done, mark_resumed
from escalations.revisions import Calls
from escalations.signatures import Signed
from ledger import wiring

__all__ = [
    "ask_preview",
    "claim", "claim_next", "decide", "decisions_for", "expire", "mark_done", "mark_resumed", "open", "reassign", "release",
    "revise", "settle", "sign", "snooze", "wake_up", "withdraw",
]  # fmt: skip


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
    follows: int | None = None,
) -> int:
    """Open an escalation and return its id; else the id of the one of this interrupt, or of the one open for this object.

    Calls become revision 0 where people may change them, and what waits for an approval is previewed at once: the caller
    rings `agent.drive`. `follows` is the escalation whose approval did not run as it was shown. Raises `facts.StillOpen`
    when the object's open escalation belongs to another interrupt.
    """
    if interrupt_id is not None and (known := _of_interrupt(conn, interrupt_id)):
        return known
    hours = policies.EXPIRES.get(kind)
    with conn.transaction():
        row = conn.execute(
            "INSERT INTO public.escalations_escalation"
            " (kind, object, payload, thread, interrupt_id, subject, requested_by, ai_message_id, generation, follows_id,"
            " amount_minor, currency, due_at, expires_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,"
            " statement_timestamp() + %s, statement_timestamp() + %s) ON CONFLICT DO NOTHING RETURNING id",
            (
                *(kind, object, Jsonb(dict(payload)), thread, interrupt_id, subject, requested_by, ai_message_id, generation),
                *(
                    follows,
                    *questions.at_stake(payload),
                    timedelta(minutes=policies.TARGETS[kind]),
                    hours and timedelta(hours=hours),
                ),
            ),
        ).fetchone()
        if row is None:
            return existing(conn, interrupt_id=interrupt_id, object=object)
        escalation = int(row[0])
        if calls and kind in policies.PROPOSING:
            revision = revisions.add(conn, escalation=escalation, number=0, calls=calls)
            if kind == "approval":
                previews.ask(conn, revision=revision, user=None)
        tell(conn, escalation=escalation)
    return escalation


def _of_interrupt(conn: Connection[Any], interrupt_id: str) -> int | None:
    """Return its escalation: a thread that still waits asks again each time it is driven, which is to use up no number."""
    row = conn.execute("SELECT id FROM public.escalations_escalation WHERE interrupt_id = %s", (interrupt_id,)).fetchone()
    return row and int(row[0])


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


def revise(
    conn: Connection[Any],
    *,
    escalation: int,
    user: int,
    calls: Calls,
    shown: int,
    as_person: bool = False,
    text: str = "",
) -> int:
    """Make a new revision of these calls (index and arguments), ask for its preview, and return its number.

    `shown` is the number that the reviewer built on. Signatures under earlier revisions are void from now on. The caller
    rings `agent.drive` with the thread. Raises `NotFound`, `AlreadyDecided`, `HeldByAnother`, `NotAllowed`, `Outdated`,
    `EditRefused` (with the messages per field), `NothingChanged`.
    """
    with conn.transaction():
        row = rows.locked(conn, escalation=escalation, verb="revise")
        rows.check_free(conn, row=row, user=user)
        first, last = revisions.proposed(conn, escalation=escalation), revisions.newest(conn, escalation=escalation)
        possible = policies.allowed_decisions(kind=row["kind"], state=row["state"], payload=row["payload"])
        if first is None or last is None or not policies.REVISING & set(possible):
            raise facts.NotAllowed(decision="take_over" if as_person else "edit")
        if last.number != shown:
            raise facts.Outdated
        changed = revisions.changed(calls, proposed=first)
        if (changed, as_person) == (last.calls, last.as_person):
            raise facts.NothingChanged
        revisions.check(changed, row=row)
        revision = revisions.add(
            conn,
            escalation=escalation,
            number=shown + 1,
            calls=changed,
            author=user,
            lowers=revisions.lowers(changed, proposed=first),
            as_person=as_person,
            text=text.strip(),
        )
        acts.note(conn, escalation=escalation, kind="edited", by=user, detail={"revision": shown + 1, "as_person": as_person})
        previews.ask(conn, revision=revision, user=user)
        tell(conn, escalation=escalation)
    return shown + 1


def ask_preview(conn: Connection[Any], *, escalation: int, user: int) -> int:
    """Ask for another preview of the newest revision, such as when the world has moved; return its id.

    The caller rings `agent.drive`. Raises `NotFound`, `AlreadyDecided`, `NotAllowed`.
    """
    with conn.transaction():
        rows.locked(conn, escalation=escalation, verb="revise")
        newest = revisions.newest(conn, escalation=escalation)
        if newest is None:
            raise facts.NotAllowed(decision="preview")
        return previews.ask(conn, revision=newest.id, user=user)


def sign(conn: Connection[Any], *, escalation: int, user: int, revision: int, preview: int, text: str = "") -> Signed:
    """Sign the newest revision (by number) as its newest preview (by id) shows it; the last signature needed decides.

    The caller rings `agent.drive` when there is a decision. Raises `NotFound`, `AlreadyDecided` (with the winner's name),
    `HeldByAnother`, `NotAllowed`, `Outdated`, `NotReady`, `OwnRequest`, `OwnAnswer`, `OwnEdit`,
    `SignedAlready`.
    """
    with conn.transaction():
        row = rows.locked(conn, escalation=escalation, verb="sign")
        rows.check_free(conn, row=row, user=user)
        newest, shown = signatures.check(conn, row=row, user=user, revision=revision, preview=preview)
        signatures.add(conn, escalation=escalation, revision=newest, preview=shown, user=user)
        acts.note(conn, escalation=escalation, kind="signed", by=user, detail={"revision": revision, "preview": preview})
        signed, needs = signatures.count(conn, revision=newest, preview=shown), shown.needs or 1
        decision = None
        if signed >= needs:
            kind = "take_over" if newest.as_person else "approve"
            decision = decisions.record(conn, row=row, kind=kind, text=text.strip(), user=user, revision=newest, preview=shown)
            _decided(conn, row=row, decision=decision)
        else:
            _free(conn, escalation=escalation)
            tell(conn, escalation=escalation)
    return Signed(decision=decision, signatures=signed, needs=needs)


def decide(conn: Connection[Any], *, escalation: int, kind: str, text: str, user: int) -> decisions.Decision:
    """Take a decision that needs no signature, and tell the conversation; all in one commit.

    The caller rings `agent.drive` with the thread after COMMIT. Raises `NotFound`, `AlreadyDecided` (with the winner's
    name), `HeldByAnother`, `NotAllowed`, `TextMissing`.
    """
    text = text.strip()
    with conn.transaction():
        row = rows.locked(conn, escalation=escalation, verb="decide")
        rows.check_free(conn, row=row, user=user)
        decisions.check(row=row, kind=kind, text=text)
        decision = decisions.record(conn, row=row, kind=kind, text=text, user=user)
        _decided(conn, row=row, decision=decision)
    return decision


def withdraw(conn: Connection[Any], *, escalation: int, user: int, text: str = "") -> decisions.Decision:
    """Take the request back, as somebody who wrote in its conversation, whoever holds it; nothing runs.

    The caller rings `agent.drive`. Raises `NotFound`, `AlreadyDecided` (with the winner's name), `NotAllowed`, `NotTheirs`.
    """
    with conn.transaction():
        row = rows.locked(conn, escalation=escalation, verb="decide")
        possible = policies.allowed_decisions(kind=row["kind"], state=row["state"], payload=row["payload"])
        if "withdraw" not in possible or row["interrupt_id"] is None:
            raise facts.NotAllowed(decision="withdraw")
        if not rows.has_asked(conn, row=row, user=user):
            raise facts.NotTheirs
        decision = decisions.record(conn, row=row, kind="withdraw", text=text.strip(), user=user)
        _decided(conn, row=row, decision=decision)
    return decision


def _decided(conn: Connection[Any], *, row: rows.Row, decision: decisions.Decision) -> None:
    """Move on to what follows a decision of a person's, and tell it."""
    if row["interrupt_id"] is None:  # no thread waits for it
        end(conn, escalation=row["id"], state="done")
    else:
        conn.execute("UPDATE public.escalations_escalation SET state = 'decided', decided_at = now() WHERE id = %s", (row["id"],))
    tell(conn, escalation=row["id"], decision=decision)


def _free(conn: Connection[Any], *, escalation: int) -> None:
    """Let somebody else look who has to sign too."""
    conn.execute(
        "UPDATE public.escalations_escalation SET state = 'open', claimed_by = NULL, claimed_until = NULL WHERE id = %s",
        (escalation,),
    )


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
