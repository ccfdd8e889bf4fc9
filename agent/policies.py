"""What the gate's rules need to know, read once before the verdict; every number is the newest of its insert-only rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, Protocol
from uuid import UUID

from django.utils import timezone
from psycopg import Connection, Cursor

from agent import rules
from agent.gate import Facts, GatedCall, Limit, Past, TurnedDown
from agent.likeness import effect
from agent.tools import Tool, registry
from agent.validation import ValidCall
from ledger import wiring

LIFE = date(1970, 1, 1)  # the day of a window that is never begun anew
LONGEST = 30 * 24  # hours that a repeated effect is looked for
MOST_USES = 100  # that a first use is counted to
MOST_PAST = 500  # calls of a customer that are compared
NEWEST = """
SELECT DISTINCT ON (rule, tool, currency) id, rule, tool, currency, value FROM public.agent_policy
ORDER BY rule, tool, currency, id DESC
"""
SUMS = """
SELECT w.scope, w.currency, w.amount FROM public.agent_window w
JOIN unnest(%s::text[], %s::date[]) AS wanted (scope, day) ON (w.scope, w.day) = (wanted.scope, wanted.day)
"""
# The tool's own number counts where no admin has set one; a rule that is off reads nothing.
PAST = """
SELECT e.tool, e.result || e.arguments, extract(epoch FROM now() - e.committed_at)::float8 / 3600, e.thread = %(thread)s
FROM unnest(%(tools)s::text[], %(again)s::int[]) AS t (tool, again)
LEFT JOIN LATERAL (SELECT id, value FROM public.agent_policy WHERE rule = 'same_effect' AND tool = t.tool AND currency = ''
                   ORDER BY id DESC LIMIT 1) p ON true
CROSS JOIN LATERAL (SELECT CASE WHEN p.id IS NULL THEN t.again ELSE p.value END AS hours) n
JOIN public.ledger_execution e ON e.subject = %(subject)s AND e.tool = t.tool
    AND e.committed_at > now() - make_interval(hours => %(longest)s)
    AND (e.thread = %(thread)s OR e.committed_at > now() - make_interval(hours => n.hours::int))
WHERE n.hours > 0
ORDER BY e.committed_at DESC LIMIT %(most)s
"""
# What the agent proposed and a person rejected, dropped or changed.
TURNED_DOWN = """
SELECT c.call->>'tool', c.call->'arguments', d.text
FROM public.escalations_escalation e
JOIN public.escalations_decision d ON d.escalation_id = e.id
LEFT JOIN public.escalations_revision r ON r.id = d.revision_id AND r.number > 0
LEFT JOIN public.escalations_revision o ON o.escalation_id = e.id AND o.number = 0
CROSS JOIN jsonb_array_elements(coalesce(o.calls, e.payload->'calls')) AS c (call)
WHERE e.thread = %(thread)s AND jsonb_typeof(c.call->'arguments') = 'object'
  AND (d.kind = 'reject' OR d.kind IN ('approve', 'take_over') AND r.id IS NOT NULL AND NOT EXISTS (
       SELECT FROM jsonb_array_elements(r.calls) AS kept (call)
       WHERE kept.call->'index' = c.call->'index' AND kept.call->'arguments' = c.call->'arguments'))
ORDER BY d.id
"""
USES = """
SELECT t.tool, (SELECT count(*) FROM (SELECT FROM public.ledger_execution e WHERE e.tool = t.tool LIMIT %(most)s) AS first)
FROM unnest(%(tools)s::text[], %(watched)s::int[]) AS t (tool, watched)
WHERE t.watched > 0 OR EXISTS (SELECT FROM public.agent_policy WHERE rule = 'first_use' AND tool = t.tool)
"""


class Knowledge(Protocol):
    """What a domain tells its rules: the object that BACKSTOP_POLICY_FACTS names."""

    def ask(self, conn: Connection[Any], *, subject: int, calls: Sequence[GatedCall]) -> Cursor[Any]:
        """Send one statement whose one row is one JSON object. Fetches nothing; `backstop.subject` is set."""

    def named(self, arguments: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a call's arguments with what they name said in the one way that results say it."""

    def currencies(self, conn: Connection[Any]) -> list[str]:
        """Return the currencies that amounts have here, for the pages of the limits."""


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """Statements under way, in the order in which they were sent."""

    numbers: Cursor[Any]
    sums: Cursor[Any]
    past: Cursor[Any]
    turned_down: Cursor[Any]
    uses: Cursor[Any]
    domain: Cursor[Any]


def facts(conn: Connection[Any], *, thread: UUID, subject: int, on_behalf_of: int, calls: Sequence[ValidCall]) -> Facts:
    """Return what the rules need to know about these calls, for one round trip.

    `conn` is an autocommit connection, or in a transaction, of which the subject is set then.
    """
    scopes = {
        f"customer:{subject}": "customer_day",
        f"staff:{on_behalf_of}": "staff_day",
        f"conversation:{thread}": "conversation",
    }
    with conn.pipeline():  # one implicit transaction, in which the subject is set
        conn.execute("SELECT set_config('backstop.subject', %s, true)", (str(subject),))
        asked = _ask(conn, thread=thread, subject=subject, calls=calls, scopes=list(scopes))
    return _read(asked, calls=calls, scopes=scopes)


def version(conn: Connection[Any]) -> str:
    """Return the version of the whole policy: the newest row's number."""
    row = conn.execute("SELECT coalesce(max(id), 0) FROM public.agent_policy").fetchone()
    return f"policy {row[0] if row else 0}"


def needs(calls: Sequence[GatedCall], facts: Facts) -> Literal[1, 2]:
    """Return how many reviewers have to sign this batch."""
    return 2 if list(rules.second_reviewer(calls, facts)) else 1


def _ask(conn: Connection[Any], *, thread: UUID, subject: int, calls: Sequence[ValidCall], scopes: list[str]) -> _Asked:
    writing = {call.tool.name: call.tool for call in calls if call.tool.writes}
    asked = {
        "thread": thread,
        "subject": subject,
        "tools": list(writing),
        "again": [tool.again_after for tool in writing.values()],
        "watched": [tool.watch_first for tool in writing.values()],
        "longest": LONGEST,
    }
    return _Asked(
        numbers=conn.execute(NEWEST),
        sums=conn.execute(SUMS, (scopes, _days(scopes))),
        past=conn.execute(PAST, asked | {"most": MOST_PAST}),
        turned_down=conn.execute(TURNED_DOWN, asked),
        uses=conn.execute(USES, asked | {"most": MOST_USES}),
        domain=_knowledge().ask(conn, subject=subject, calls=calls),
    )


def _days(scopes: Iterable[str]) -> list[date]:
    today = timezone.localdate()
    return [LIFE if scope.startswith("conversation:") else today for scope in scopes]


def _read(asked: _Asked, *, calls: Sequence[ValidCall], scopes: Mapping[str, str]) -> Facts:
    tools = {**registry(), **{call.tool.name: call.tool for call in calls}}
    (known,) = asked.domain.fetchone() or ({},)

    def of(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        return effect(tool, arguments=_knowledge().named(arguments, known))

    return Facts(
        numbers={(rule, tool, code): Limit(value=value, version=i) for i, rule, tool, code, value in asked.numbers},
        effects={call.index: of(call.tool, call.plain) for call in calls},
        past=[Past(effect=of(tools[tool], given), hours=hours, here=here) for tool, given, hours, here in asked.past],
        turned_down=[
            TurnedDown(effect=of(tools[tool], given), reason=reason) for tool, given, reason in asked.turned_down if tool in tools
        ],
        uses=dict(asked.uses.fetchall()),
        sums={(scopes[scope], currency): amount for scope, currency, amount in asked.sums},
        domain=known,
    )


def _knowledge() -> Knowledge:
    found: Knowledge = wiring.plugged("BACKSTOP_POLICY_FACTS")
    return found
