"""Carrying a scan out: one escalation for each disagreement, none for the same twice, and the end of those that are gone."""

from typing import Any

import structlog
from psycopg import Connection
from psycopg.rows import dict_row

from escalations import lifecycle, policies
from escalations.reconciling import looking, scans
from escalations.reconciling.looking import Found
from ledger import faults, reconciling
from ledger.reconciling import Disagreement, Get

log = structlog.get_logger()
OF_MESSAGE = policies.OF_MESSAGES  # what a settled message asked by itself names no check
STANDING = "standing"  # among a scan's counts: the checks of what people let stand as it is
GONE = "A scan found that both sides agree again."
ASKED = """
SELECT id, object, kind, state, payload ->> 'check' AS check FROM public.escalations_escalation
WHERE state = ANY(ARRAY['open', 'claimed', 'decided', 'resumed']) AND kind = ANY(ARRAY['dirty_state', 'unknown_outcome'])
"""
# What was settled after this scan had begun to look may be gone by now; what a person let stand as it is stays so.
SETTLED_SINCE = """
SELECT EXISTS (SELECT FROM public.escalations_escalation e JOIN public.escalations_decision d ON d.escalation_id = e.id
               WHERE e.object = %(object)s AND e.kind = ANY(ARRAY['dirty_state', 'unknown_outcome'])
                 AND (e.closed_at > %(since)s
                      OR (d.kind = 'compensate' AND e.payload ->> 'fingerprint' = %(fingerprint)s)))
"""
CASE = """
SELECT e.object, e.payload ->> 'check' AS check, r.outcome FROM public.escalations_escalation e
LEFT JOIN public.outbox_request r ON r.escalation = e.id AND r.message_id = (e.payload ->> 'message_id')::bigint
WHERE e.id = %s
"""
DONE = """
UPDATE public.escalations_escalation SET state = 'done', closed_at = now()
WHERE id = %s AND state = ANY(ARRAY['decided', 'resumed']) RETURNING id
"""


def work(conn: Connection[Any], *, get: Get | None) -> int:
    """Carry out every scan that is asked for or due, and return how many. `conn` is in autocommit mode, as the outbox login."""
    scans.plan(conn)
    done = 0
    while (scan := scans.take(conn)) is not None:
        faults.reach("scan.taken")
        if scan["escalation"] is None:
            whole(conn, scan=scan, get=get)
        else:
            of_case(conn, scan=scan, get=get)
        done += 1
    return done


def whole(conn: Connection[Any], *, scan: scans.Row, get: Get | None) -> None:
    """Compare everything, open what is new and clear what is gone."""
    found = looking.everything(conn, get=get if scans.asks_provider(conn, scan=scan) else None)
    settle(conn, scan=scan, found=found)


def settle(conn: Connection[Any], *, scan: scans.Row, found: Found) -> dict[str, Any]:
    """Open what is new and clear what is gone; write down, and return, what a scan of everything found."""
    asked = _asked(conn)
    known = {row["object"] for row in asked}
    unknown = [(name, one) for name, one in found.disagreements.values() if one.object not in known]
    new = [(name, open_for(conn, name=name, one=one, since=scan["started_at"])) for name, one in unknown]
    stands = [name for name, opened in new if opened is None]
    told: dict[str, Any] = {
        "counts": found.counts | ({"let stand": len(stands), STANDING: sorted(set(stands))} if stands else {}),
        "found": len(found.disagreements) - len(stands),
        "opened": len(new) - len(stands),
        "cleared": _clear(conn, asked, found),
        "error": found.error,
    }
    faults.reach("scan.settled")
    scans.finish(conn, scan=scan["id"], **told)
    log.info("escalations.scan.finished", scan=scan["id"], **told)
    return told


def of_case(conn: Connection[Any], *, scan: scans.Row, get: Get | None) -> None:
    """Look again at what was settled: it is done, and asked about anew if both sides still disagree."""
    with conn.cursor(row_factory=dict_row) as cursor:
        case = cursor.execute(CASE, (scan["escalation"],)).fetchone()
    assert case is not None  # scans.plan names it
    check = reconciling.find(case["check"] or OF_MESSAGE)
    found = looking.everything(conn, get=get, checks=[check] if check else [])
    if found.errors or (check and check.name not in found.looked):
        scans.put_off(conn, scan=scan["id"], error=found.error or "The provider could not be asked.")
        return
    name, still = found.disagreements.get(case["object"], ("", None))
    with conn.transaction():
        ended = conn.execute(DONE, (scan["escalation"],)).fetchone()
        lifecycle.tell(conn, escalation=scan["escalation"])
        new = still and ended and open_for(conn, name=name, one=still, follows=scan["escalation"], outcome=case["outcome"])
        scans.finish(conn, scan=scan["id"], counts={}, found=int(still is not None), opened=int(bool(new)), cleared=0, error="")
        faults.reach("scan.looked")


def open_for(
    conn: Connection[Any],
    *,
    name: str,
    one: Disagreement,
    since: Any = None,
    follows: int | None = None,
    outcome: str | None = None,
) -> int | None:
    """Open the escalation of a disagreement that a check found; None when it was settled since, or is let stand as it is."""
    if is_settled(conn, one=one, since=since):
        return None
    return lifecycle.open(
        conn,
        kind="dirty_state",
        object=one.object,
        payload=payload(name, one, outcome=outcome),
        thread=one.thread,
        subject=one.subject,
        requested_by=one.requested_by,
        ai_message_id=one.ai_message_id,
        follows=follows,
    )


def is_settled(conn: Connection[Any], *, one: Disagreement, since: Any = None) -> bool:
    """Return whether people let a disagreement stand just as it is, or settled it since then."""
    given = {"object": one.object, "since": since, "fingerprint": one.fingerprint}
    (settled,) = conn.execute(SETTLED_SINCE, given).fetchone() or (False,)
    return bool(settled)


def payload(name: str, one: Disagreement, *, outcome: str | None = None) -> dict[str, Any]:
    """Return what reviewers are shown of a disagreement."""
    more: dict[str, Any] = {"message_id": one.message} if one.message is not None else {}
    if one.amount_minor:
        more |= {"amount_minor": one.amount_minor, "currency": one.currency}
    if outcome:
        more |= {"before": outcome}
    said = {"reason": one.sentence, "detail": one.detail, "about": one.about, "check": name, "fingerprint": one.fingerprint}
    return {**said, **one.shown(), **more, "phase": "after_answers", "calls": []}


def _asked(conn: Connection[Any]) -> list[scans.Row]:
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(ASKED).fetchall()


def _clear(conn: Connection[Any], asked: list[scans.Row], found: Found) -> int:
    """End the questions about what a check that went through does not find any more, and return how many."""
    gone = [row for row in asked if _is_gone(row, found)]
    return sum(lifecycle.settle(conn, object=row["object"], text=GONE) is not None for row in gone)


def _is_gone(row: scans.Row, found: Found) -> bool:
    """Return whether an undecided question is about nothing any more; what no check asked, only its message's end answers."""
    check = row["check"] or (OF_MESSAGE if row["kind"] == "unknown_outcome" else None)
    undecided = row["state"] in ("open", "claimed")
    return undecided and check in found.looked and row["object"] not in found.disagreements
