"""What a limit would have done: how many of the last 30 days' steps it would have held, from the ledger and the attempts.

Counted are the steps that were applied, and those that were held and never ran. A step that was held and approved is one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from psycopg import Connection, errors

from agent.amendments import Change, current
from agent.numbers import RULES, Rule
from agent.tools import Tool, registry
from ledger import people

DAYS = 30
SECONDS = 3  # that an admin waits for the answer at most
MOST_EXAMPLES = 10

# One row a call. What never ran has no result, and its calls are as they were to run: without those that a person dropped.
CALLS = """
WITH period AS (
    SELECT date_trunc('day', now() AT TIME ZONE %(zone)s) AT TIME ZONE %(zone)s - make_interval(days => %(days)s) AS since
), wanted AS (
    SELECT * FROM unnest(%(tools)s::text[], %(minors)s::text[], %(codes)s::text[]) AS t (tool, minor, code)
), turned AS (
    SELECT DISTINCT ON (o.thread, o.ai_message_id) o.thread, o.attempt_id, o.calls, o.closed_at
    FROM public.ledger_attempt_outcome o, period
    WHERE o.outcome IN ('held', 'rejected') AND o.closed_at >= period.since AND NOT EXISTS (
        SELECT FROM public.ledger_execution e WHERE e.thread = o.thread AND e.ai_message_id = o.ai_message_id)
    ORDER BY o.thread, o.ai_message_id, o.attempt_id
), calls AS (
    SELECT e.attempt_id, e.thread, e.subject, e.on_behalf_of, e.committed_at AS at, e.tool, e.arguments,
           e.result || e.arguments AS named
    FROM public.ledger_execution e, period
    WHERE e.tool = ANY(%(tools)s) AND e.committed_at >= period.since - make_interval(hours => %(before)s)
  UNION ALL
    SELECT t.attempt_id, t.thread, a.subject, a.on_behalf_of, t.closed_at, c->>'tool', c->'arguments', c->'arguments'
    FROM turned t JOIN public.ledger_attempt a ON a.id = t.attempt_id CROSS JOIN jsonb_array_elements(t.calls) AS c
    WHERE c->>'tool' = ANY(%(tools)s) AND jsonb_typeof(c->'arguments') = 'object' AND NOT c @> '{"dropped": true}'
)"""
AMOUNTS = """, amounts AS (
    SELECT c.attempt_id, c.thread, c.subject, c.on_behalf_of, c.at,
           (c.arguments->>w.minor)::bigint AS amount, (c.arguments->>w.code) COLLATE "C" AS currency
    FROM calls c JOIN wanted w USING (tool)
    WHERE jsonb_typeof(c.arguments->w.minor) = 'number'
      AND CASE WHEN %(currency)s = '' THEN c.arguments->>w.code <> ALL(%(others)s) ELSE c.arguments->>w.code = %(currency)s END
)"""
ONE = """, judged AS (
    SELECT attempt_id, at, subject, amount AS measured, currency,
           coalesce(amount > %(new)s, false) AS would, coalesce(amount > %(now)s, false) AS does
    FROM amounts
)"""
# Calls of one step have one time, and so one sum. What a person allowed counts as well. Whole numbers of this size are exact
# as floating point, which is added up in a fraction of the time.
SUMMED = """, summed AS (
    SELECT attempt_id, at, subject, currency, sum(amount::float8) OVER (PARTITION BY {scope}, currency ORDER BY at) AS measured
    FROM amounts
), judged AS (
    SELECT attempt_id, at, subject, measured::bigint, currency, coalesce(measured > %(new)s, false) AS would,
           coalesce(measured > %(now)s, false) AS does
    FROM summed
)"""
SCOPES = {
    "customer_day": "subject, (at AT TIME ZONE %(zone)s)::date",
    "staff_day": "on_behalf_of, (at AT TIME ZONE %(zone)s)::date",
    "conversation": "thread",
}
SAME = """, likened AS (
    SELECT attempt_id, at, subject, thread, hashtextextended(jsonb_build_array({names})::text, 0) AS effect FROM calls
), repeated AS (
    SELECT *, extract(epoch FROM at - lag(at) OVER (PARTITION BY subject, effect ORDER BY at)) / 3600 AS hours,
           row_number() OVER (PARTITION BY thread, effect ORDER BY at) > 1 AS here
    FROM likened
), judged AS (
    SELECT attempt_id, at, subject, NULL::bigint AS measured, '' AS currency,
           coalesce(%(new)s > 0 AND (here OR hours < %(new)s), false) AS would,
           coalesce(%(now)s > 0 AND (here OR hours < %(now)s), false) AS does
    FROM repeated WHERE at >= (SELECT since FROM period)
)"""
FIRST = """, first AS (
    SELECT attempt_id, row_number() OVER (ORDER BY committed_at, attempt_id, call_index) AS use FROM (
        SELECT attempt_id, committed_at, call_index FROM public.ledger_execution WHERE tool = ANY(%(tools)s)
        ORDER BY committed_at LIMIT greatest(%(new)s, %(now)s)) AS used
), judged AS (
    SELECT c.attempt_id, c.at, c.subject, NULL::bigint AS measured, '' AS currency,
           coalesce(f.use <= %(new)s, false) AS would, coalesce(f.use <= %(now)s, false) AS does
    FROM calls c LEFT JOIN first f USING (attempt_id)
)"""
STEPS = """, steps AS (
    SELECT attempt_id, max(at) AS at, max(subject) AS subject, max(currency) AS currency,
           max(measured) FILTER (WHERE judged.would) AS measured, bool_or(judged.would) AS would, bool_or(judged.does) AS does
    FROM judged GROUP BY attempt_id
)
SELECT count(*), count(*) FILTER (WHERE steps.would), count(*) FILTER (WHERE steps.does), (
    SELECT coalesce(jsonb_agg(to_jsonb(newest)), '[]') FROM (
        SELECT attempt_id, extract(epoch FROM at)::float8 AS at, subject, measured, currency FROM steps WHERE steps.would
        ORDER BY at DESC, attempt_id LIMIT %(examples)s) AS newest)::text
FROM steps
"""
# Sorting in memory, and no compiling of what runs once: together they halve the time.
HASTE = "SELECT set_config('statement_timeout', %s, true), set_config('work_mem', '64MB', true), set_config('jit', 'off', true)"


class TooLong(Exception):
    """There is more history than can be counted while somebody waits."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """One step that the limit would have held."""

    attempt: UUID
    at: datetime
    subject: str
    measured: int | None  # minor units
    currency: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the limit would have done in the last `DAYS` days, and what the number that counts now would have."""

    change: Change
    now_value: int | None
    steps: int
    held: int
    held_now: int
    examples: list[Example]

    @property
    def words(self) -> str:
        """Return the answer as a sentence."""
        tool = f" with {self.change.tool}" if self.change.tool else ""
        if not self.steps:
            return f"There was no step{tool} in the last {DAYS} days."
        steps = f"{self.steps:,} step{'s' if self.steps != 1 else ''}"
        return f"This limit would have held {self.held:,} of {steps}{tool} in {DAYS} days; the present one {self.held_now:,}."


def answer(conn: Connection[Any], *, change: Change) -> Answer:
    """Count, in a transaction that the caller has begun. Raises TooLong after `SECONDS` seconds."""
    rule = RULES[change.rule]
    now = current(conn, rule=change.rule, tool=change.tool, currency=change.currency)
    tools = [registry()[change.tool]] if rule.by_tool else list(rule.tools())
    conn.execute(HASTE, (str(int(SECONDS * 1000)),))
    asked = _parameters(conn, change, rule=rule, tools=tools, now=now)
    try:
        row: Any = conn.execute(_statement(rule, tools), asked).fetchone()
    except errors.QueryCanceled as error:
        raise TooLong from error
    return Answer(
        change=change, now_value=now, steps=row[0], held=row[1], held_now=row[2], examples=_examples(json.loads(row[3]))
    )  # fmt: skip


def _statement(rule: Rule, tools: list[Tool]) -> str:
    if rule.name == "same_effect":
        names = tools[0].effect or tuple(sorted(tools[0].arguments.model_fields))
        said = ", ".join(f"named->'{name}'" for name in names)  # names of a model's fields: identifiers
        return CALLS + SAME.format(names=said) + STEPS
    if rule.name == "first_use":
        return CALLS + FIRST + STEPS
    judged = SUMMED.format(scope=SCOPES[rule.name]) if rule.name in SCOPES else ONE
    return CALLS + AMOUNTS + judged + STEPS


def _parameters(conn: Connection[Any], change: Change, *, rule: Rule, tools: list[Tool], now: int | None) -> dict[str, Any]:
    own = "SELECT DISTINCT currency FROM public.agent_policy WHERE rule = %s AND tool = %s AND currency <> ''"
    off = 0 if rule.less_is_looser else None
    new, now = (off if value is None else value for value in (change.value, now))
    return {
        "zone": settings.TIME_ZONE,
        "days": DAYS,
        "tools": [tool.name for tool in tools],
        "minors": [tool.amount_arguments[0] for tool in tools],
        "codes": [tool.amount_arguments[1] for tool in tools],
        "currency": change.currency,
        "others": [code for (code,) in conn.execute(own, (change.rule, change.tool))],
        "new": new,
        "now": now,
        "before": max(new or 0, now or 0) if rule.name == "same_effect" else 0,
        "examples": MOST_EXAMPLES,
    }


def _examples(rows: list[Mapping[str, Any]]) -> list[Example]:
    names = people.subject_names(row["subject"] for row in rows)
    return [
        Example(
            attempt=UUID(row["attempt_id"]),
            at=datetime.fromtimestamp(row["at"]).astimezone(),
            subject=names.get(row["subject"], f"Customer {row['subject']}"),
            measured=row["measured"],
            currency=row["currency"],
        )
        for row in rows
    ]
