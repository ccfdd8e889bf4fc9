"""What the books say about a prepared request on its way, as the web login reads them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from sandbox.breaking import demonstration
from sandbox.breaking.requests import Request

THREAD = "SELECT state, fence, lease_owner, leased_until > clock_timestamp() AS held FROM public.agent_thread WHERE thread = %s"
ATTEMPTS = """
SELECT a.id, a.ai_message_id, o.outcome FROM public.ledger_attempt a
LEFT JOIN public.ledger_attempt_outcome o ON o.attempt_id = a.id
WHERE a.thread = %s AND a.opened_at >= %s ORDER BY a.opened_at, a.id
"""
EXECUTED = "SELECT count(*) FROM public.ledger_execution WHERE thread = %s AND ai_message_id = ANY(%s)"
MESSAGE = """
SELECT uid, state, sends, ever_unknown, outcome_source FROM public.outbox_message
WHERE thread = %s AND topic = 'payment.charge' AND ai_message_id = ANY(%s) ORDER BY id LIMIT 1
"""
PAYMENTS = """
SELECT p.amount_minor FROM public.billing_payment p JOIN public.billing_invoice i ON i.id = p.invoice_id
WHERE i.customer_id = %s AND i.billing_period = %s
"""
QUEUED = "SELECT count(*) FROM public.agent_staff_message WHERE thread = %s AND state = 'queued'"


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One try at the batch; without an outcome it is under way, or its worker is gone."""

    id: UUID
    outcome: str | None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """One look at the rows."""

    state: str
    fence: int
    owner: str | None
    held: bool  # the lease has not run out
    queued: int
    attempts: tuple[Attempt, ...]
    executed: int
    message: UUID | None
    sending: str  # state of the charge, empty before there is one
    unknown: bool  # its outcome was not known at some time
    source: str  # of its outcome: response, lookup, webhook, person
    payments: tuple[int, ...]

    @property
    def worker(self) -> int | None:
        """Return the number of the process that holds the lease."""
        return demonstration.number_in(self.owner)

    @property
    def committed(self) -> Attempt | None:
        """Return the attempt that was applied."""
        return next((one for one in self.attempts if one.outcome == "committed"), None)


def of(conn: Connection[Any], request: Request, *, since: datetime) -> Facts:
    """Return what is known of a request that was sent after a moment of the database's clock."""
    with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        thread = cursor.execute(THREAD, (request.thread,)).fetchone() or {}
        attempts = cursor.execute(ATTEMPTS, (request.thread, since)).fetchall()
        steps = [row["ai_message_id"] for row in attempts]
        executed = cursor.execute(EXECUTED, (request.thread, steps)).fetchone() or {}
        message = cursor.execute(MESSAGE, (request.thread, steps)).fetchone() or {}
        payments = cursor.execute(PAYMENTS, (request.customer, request.month)).fetchall()
        queued = cursor.execute(QUEUED, (request.thread,)).fetchone() or {}
    return Facts(
        state=thread.get("state", "idle"),
        fence=thread.get("fence", 0),
        owner=thread.get("lease_owner"),
        held=bool(thread.get("held")),
        queued=queued.get("count", 0),
        attempts=tuple(Attempt(id=row["id"], outcome=row["outcome"]) for row in attempts),
        executed=executed.get("count", 0),
        message=message.get("uid"),
        sending=message.get("state", ""),
        unknown=bool(message.get("ever_unknown")) or message.get("state") == "uncertain",
        source=message.get("outcome_source") or "",
        payments=tuple(row["amount_minor"] for row in payments),
    )
