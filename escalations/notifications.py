"""Telling reviewers that a question waits, is late, or ended undecided: messages of the outbox, skipped once decided.

What leaves says which question it is and what is at stake, never what a customer or a staff member wrote.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from psycopg import Connection

from escalations import acts, questions
from escalations.models import Escalation
from ledger import sentences
from outbox import messages
from outbox.handlers import Handler, Step
from outbox.messages import Cause
from outbox.outcomes import Outcome

Payload = Mapping[str, Any]

PATIENCE = timedelta(seconds=15)  # whoever watches the desk decides without an e-mail
SAYS = {
    "new": "waits for a reviewer",
    "ageing": "is past its target and still waits for a reviewer",
    "expired": "ended undecided: nobody decided in time, and nothing of it ran",
}
LATE = """
SELECT e.id FROM public.escalations_escalation e
WHERE e.state IN ('open', 'claimed') AND e.due_at <= now() AND coalesce(e.snoozed_until, e.due_at) <= now()
  AND NOT EXISTS (SELECT FROM public.outbox_message m
                  WHERE m.dedupe_key IN ('notify:' || e.id || ':ageing:email', 'notify:' || e.id || ':ageing:chat'))
ORDER BY e.due_at, e.id LIMIT 200
FOR UPDATE OF e SKIP LOCKED  -- another worker may be telling of them
"""
ABOUT = "SELECT kind, amount_minor, currency FROM public.escalations_escalation WHERE id = %s"
WAITS = "SELECT state IN ('open', 'claimed') FROM public.escalations_escalation WHERE id = %s"


def tell(conn: Connection[Any], *, escalation: Mapping[str, Any]) -> None:
    """Promise a notice of a question that is new, or that the system ended for want of a person; in the caller's transaction."""
    decision = escalation["decision"]
    if decision is None and escalation["state"] == Escalation.State.OPEN:
        promise(conn, escalation=escalation["id"], event="new")
    elif decision and decision["kind"] == "expire":
        promise(conn, escalation=escalation["id"], event="expired")


def remind(conn: Connection[Any]) -> list[int]:
    """Promise a notice of each question that is past its target, once, and return their ids."""
    if not channels():
        return []
    with conn.transaction():
        late = [row[0] for row in conn.execute(LATE).fetchall()]
        for escalation in late:
            promise(conn, escalation=escalation, event="ageing")
    return late


def promise(conn: Connection[Any], *, escalation: int, event: str) -> None:
    """Queue one notice for each channel that is set up; one that was promised before stays the only one."""
    for channel in channels():
        key = f"notify:{escalation}:{event}:{channel}"
        if conn.execute("SELECT 1 FROM public.outbox_message WHERE dedupe_key = %s", (key,)).fetchone():
            continue
        messages.enqueue(
            conn,
            topic=f"notify.{channel}",
            aggregate=f"escalation:{escalation}:{channel}",
            dedupe_key=key,
            payload=described(conn, escalation=escalation, event=event),
            cause=Cause(),
            delay=PATIENCE if (event, channel) == ("new", "email") else timedelta(0),
        )


def channels() -> list[str]:
    """Return the ways in which reviewers are told."""
    known = {"email": settings.BACKSTOP_NOTIFY_EMAIL, "chat": settings.BACKSTOP_NOTIFY_CHAT}
    return [channel for channel, wanted in known.items() if wanted]


def described(conn: Connection[Any], *, escalation: int, event: str) -> dict[str, Any]:
    """Return what a notice says, as its payload."""
    kind, amount, currency = conn.execute(ABOUT, (escalation,)).fetchone() or ("", None, "")
    stake = sentences.money(amount, currency) if amount is not None and currency else ""
    return {"escalation": escalation, "event": event, "kind": kind, "stake": stake, "to": settings.BACKSTOP_NOTIFY_EMAIL}


def sentence(payload: Payload) -> str:
    """Return the notice in words: "E-12 (Held, €320.00) waits for a reviewer"."""
    mark = questions.KINDS.get(payload["kind"])
    about = ", ".join(part for part in (mark.word if mark else "", payload["stake"]) if part)
    return f"E-{payload['escalation']} ({about}) {SAYS[payload['event']]}"


def wanted(conn: Connection[Any], *, message: Mapping[str, Any]) -> bool:
    """Return whether the notice is still news: nobody has decided meanwhile."""
    if message["payload"]["event"] == "expired":
        return True
    row = conn.execute(WAITS, (message["payload"]["escalation"],)).fetchone()
    return bool(row and row[0])


def settle(conn: Connection[Any], *, message: Mapping[str, Any], outcome: Outcome) -> None:
    """Note on the question's page that reviewers were told."""
    if outcome.kind == "succeeded":
        payload = message["payload"]
        detail = {"channel": message["topic"].partition(".")[2], "event": payload["event"]}
        acts.note(conn, escalation=payload["escalation"], kind="notified", by=None, detail=detail)


def link(payload: Payload) -> str:
    """Return the address of the question's page."""
    return f"{settings.BACKSTOP_PUBLIC_URL}/escalations/{payload['escalation']}/"


def _email(payload: Payload, uid: UUID) -> list[Step]:
    said = sentence(payload)
    text = f"{said}.\n\n{link(payload)}\n"
    params = {"to": list(payload["to"]), "subject": f"Backstop: {said}", "text": text}
    return [Step(name="send", path="", params=params, renewable=True)]


def _chat(payload: Payload, uid: UUID) -> list[Step]:
    return [Step(name="send", path="", params={"text": f"{sentence(payload)}: {link(payload)}"}, renewable=True)]


def _handler(channel: str, steps: Any) -> Handler:
    return Handler(
        topic=f"notify.{channel}",
        destination=channel,
        repeat="harmless",
        steps=steps,
        settle=settle,
        wanted=wanted,
        asked_for=False,
        sentence=sentence,
    )


HANDLERS = (_handler("email", _email), _handler("chat", _chat))
