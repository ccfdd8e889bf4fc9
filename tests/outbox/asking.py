"""Requests as pages record them and the worker carries them out."""

from typing import Any

from outbox import requests
from tests.outbox.desk import Desk, Row


def ask(web: Any, message: Row, kind: str) -> None:
    """Record a request as a page does."""
    with web.transaction():
        requests.ask(web, message=message["id"], kind=kind, reason="the customer called", user=7)


def carry_out(desk: Desk) -> int:
    """Do what is asked for, as the worker does."""
    with desk.pool.connection() as conn:
        return requests.carry_out(conn)


def outcome(desk: Desk) -> str | None:
    """Return what became of the last request."""
    found: str | None = desk.one("SELECT outcome FROM public.outbox_request ORDER BY id DESC LIMIT 1")["outcome"]
    return found


def done(desk: Desk, web: Any, message: Row, kind: str) -> str | None:
    """Ask, carry out, and return what became of it."""
    ask(web, message, kind)
    assert carry_out(desk) == 1
    return outcome(desk)


def asked_about(desk: Desk, message: Row) -> list[tuple[str, str]]:
    """Return kind and state of the questions about a message."""
    query = "SELECT kind, state FROM public.escalations_escalation WHERE object = %s ORDER BY id"
    return desk.owner.execute(query, (f"message:{message['id']}",)).fetchall()
