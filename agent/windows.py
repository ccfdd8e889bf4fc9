"""What was spent per customer, staff member and conversation on a day: the sums behind cumulative limits."""

from collections.abc import Iterable
from datetime import date
from typing import Any

from psycopg import Connection

from agent.validation import ValidCall
from ledger.attempts import Attempt

ADD = """
INSERT INTO public.agent_window (scope, day, currency, amount)
SELECT * FROM unnest(%s::text[], %s::date[], %s::text[], %s::bigint[])
ON CONFLICT (scope, day, currency) DO UPDATE SET amount = agent_window.amount + excluded.amount
"""


def scopes(attempt: Attempt) -> list[str]:
    """Return the scopes of a batch in key order, so that two batches lock them in the same order."""
    return sorted([f"customer:{attempt.subject}", f"staff:{attempt.on_behalf_of}", f"conversation:{attempt.thread}"])


def sums(calls: Iterable[ValidCall]) -> dict[str, int]:
    """Return what the calls move, in minor units by currency; only amounts that have a limit count."""
    totals: dict[str, int] = {}
    for call in calls:
        amount = call.tool.amount(call.arguments)
        if amount and call.tool.hold_above is not None:
            totals[amount.currency] = totals.get(amount.currency, 0) + amount.minor
    return totals


def add(conn: Connection[Any], attempt: Attempt, *, totals: dict[str, int], day: date) -> None:
    """Add a batch's sums as its last statement; `day` is in the installation's zone."""
    rows = sorted((scope, day, currency, amount) for scope in scopes(attempt) for currency, amount in totals.items())
    if rows:
        conn.execute(ADD, tuple(list(column) for column in zip(*rows, strict=True)))
