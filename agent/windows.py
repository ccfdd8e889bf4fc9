"""What was spent per customer and day, staff member and day, and conversation: the sums behind cumulative limits.

The gate asks people beforehand as the sums stand then; here they are added up under lock, as the last statement of a batch.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from psycopg import Connection

from agent import rules
from agent.gate import Limit, Verdict
from agent.validation import ValidCall
from ledger.attempts import Attempt

Limits = Mapping[tuple[str, str], Limit]  # (rule, currency); an empty currency stands for each that has none of its own

ADD = "SELECT public.agent_window_add(%s::text[], %s::date[], %s::text[], %s::bigint[], %s::bigint[])"
LIFE = date(1970, 1, 1)  # the day of what is summed over a conversation's whole life
RULES = {"customer": "customer_day", "staff": "staff_day", "conversation": "conversation"}


def add(
    conn: Connection[Any],
    attempt: Attempt,
    *,
    calls: Sequence[ValidCall],
    day: date,
    limits: Limits,
    waived: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Add what the calls move; `day` is in the installation's zone. Nothing is fetched.

    Raises (when its answer is read) SQLSTATE BS002 if a sum goes over its limit, or over what a person has waived. The rows
    are in key order, so that two batches lock them in the same order.
    """
    rows = sorted(
        (scope, on, currency, total, _allowed(limits, waived, scope=scope, currency=currency))
        for scope, on in _scopes(attempt, day)
        for currency, (total, _) in rules.totals(calls).items()
        if total  # what moves nothing goes over no limit
    )
    if rows:
        conn.execute(ADD, tuple(list(column) for column in zip(*rows, strict=True)))


def verdicts(detail: str, *, calls: Sequence[ValidCall], limits: Limits) -> list[Verdict]:
    """Return why a batch whose sums went over is held; `detail` is what the database said about them."""
    largest = {currency: call for currency, (_, call) in rules.totals(calls).items()}
    return [_verdict(over, largest[over["currency"]], limits) for over in json.loads(detail)]


def _scopes(attempt: Attempt, day: date) -> list[tuple[str, date]]:
    days = {f"customer:{attempt.subject}": day, f"staff:{attempt.on_behalf_of}": day, f"conversation:{attempt.thread}": LIFE}
    return list(days.items())


def _limit(limits: Limits, *, rule: str, currency: str) -> Limit:
    return limits.get((rule, currency)) or limits.get((rule, "")) or Limit(value=None)


def _allowed(limits: Limits, waived: Sequence[Mapping[str, Any]], *, scope: str, currency: str) -> int | None:
    rule = _rule(scope)
    limit = _limit(limits, rule=rule, currency=currency).value
    if limit is None:
        return None
    shown = [item.get("measured") or 0 for item in waived if (item["rule"], item.get("currency")) == (rule, currency)]
    return max([limit, *shown])


def _verdict(over: Mapping[str, Any], largest: Any, limits: Limits) -> Verdict:
    rule, currency = _rule(over["scope"]), over["currency"]
    limit = _limit(limits, rule=rule, currency=currency)
    return rules.over(rule, largest, limit=limit, measured=over["measured"], currency=currency)


def _rule(scope: str) -> str:
    return RULES[scope.partition(":")[0]]
