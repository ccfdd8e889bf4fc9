"""What is still being put right, in words: conversations whose worker is gone, messages that wait. As the web login reads it."""

from collections.abc import Iterator
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from sandbox.breaking import demonstration

THREADS = """
SELECT lease_owner, ceil(extract(epoch FROM leased_until - clock_timestamp()))::integer AS seconds
FROM public.agent_thread WHERE state = 'running' ORDER BY leased_until
"""
UNHEARD = """
SELECT count(DISTINCT m.thread) AS number FROM public.agent_staff_message m
LEFT JOIN public.agent_thread t ON t.thread = m.thread
WHERE m.state = 'queued' AND coalesce(t.state, 'idle') = 'idle' AND m.sent_at < clock_timestamp() - interval '1 second'
"""
MESSAGES = """
SELECT state, lease_owner, ceil(extract(epoch FROM next_attempt_at - clock_timestamp()))::integer AS next,
    ceil(extract(epoch FROM leased_until - clock_timestamp()))::integer AS seconds
FROM public.outbox_message WHERE state IN ('ready', 'leased', 'uncertain') ORDER BY id
"""


def waiting(conn: Connection[Any]) -> list[str]:
    """Return one sentence for each kind of thing that is under way again but not done."""
    with conn.cursor(row_factory=dict_row) as cursor:
        threads = cursor.execute(THREADS).fetchall()
        unheard = cursor.execute(UNHEARD).fetchone() or {"number": 0}
        messages = cursor.execute(MESSAGES).fetchall()
    return [*_of_threads(threads), *_of_requests(unheard["number"]), *_of_messages(messages)]


def _of_threads(rows: list[dict[str, Any]]) -> Iterator[str]:
    lost = [row["seconds"] for row in rows if row["seconds"] and row["seconds"] > 0 and _gone(row["lease_owner"])]
    if lost:
        yield f"{_of(len(lost), 'conversation')} for its lease: {lost[0]} s"
    over = sum(1 for row in rows if row["seconds"] is None or row["seconds"] <= 0)
    if over:
        yield f"{_of(over, 'conversation')} for a new worker: at most 5 s"


def _of_requests(number: int) -> Iterator[str]:
    if number:
        yield _of(number, "request") + (
            " for the sweep: at most 5 s" if demonstration.works("agent") else " for the agent to start"
        )


def _of_messages(rows: list[dict[str, Any]]) -> Iterator[str]:
    unknown = [max(0, row["next"]) for row in rows if row["state"] == "uncertain"]
    if unknown:
        yield f"{_of(len(unknown), 'charge')} to be looked up at Stripe: {min(unknown)} s"
    lost = [row["seconds"] for row in rows if row["state"] == "leased" and _gone(row["lease_owner"])]
    if lost:
        yield f"{_of(len(lost), 'charge')} for its lease: {max(0, min(lost))} s"
    later = [row["next"] for row in rows if row["state"] == "ready" and row["next"] > 1]
    if later:
        yield f"{_of(len(later), 'charge')} to be sent: {min(later)} s"


def _of(number: int, noun: str) -> str:
    return f"1 {noun} waits" if number == 1 else f"{number} {noun}s wait"


def _gone(owner: str | None) -> bool:
    """Say whether the process that an owner's name ("host:process…") has in it is gone from this machine."""
    number = demonstration.number_in(owner)
    return number is not None and not demonstration.alive(number)
