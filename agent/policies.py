"""What the gate's rules need to know, read once before the verdict; every number is the newest of its insert-only rows."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol
from uuid import UUID

from django.utils import timezone
from psycopg import Connection, Cursor

from agent import rules
from agent.gate import Facts, GatedCall, Limit, Past, TurnedDown
from agent.likeness import Effect, effect
from agent.tools import registry
from agent.validation import ValidCall
from ledger import wiring

SCOPES = (("customer", "customer_day"), ("staff", "staff_day"), ("conversation", "conversation"))
LONGEST = 30 * 24  # hours that a repeated effect is looked for
MOST_USES = 100  # that a first use is counted to
MOST_PAST = 500  # calls of a customer that are compared
# One statement: what is not needed is not read. The tool's own number counts where no admin has set one.
FACTS = """
SELECT (
    SELECT jsonb_agg(jsonb_build_array(rule, tool, currency, value, id)) FROM (
        SELECT DISTINCT ON (rule, tool, currency) id, rule, tool, currency, value FROM public.agent_policy
        ORDER BY rule, tool, currency, id DESC) AS newest
), (
    SELECT jsonb_agg(jsonb_build_array(w.scope, w.currency, w.amount)) FROM public.agent_window w
    WHERE w.scope IN (%(customer)s, %(staff)s) AND w.day = %(today)s OR w.scope = %(conversation)s AND w.day = '1970-01-01'
), (
    SELECT jsonb_agg(jsonb_build_array(tool, named, hours, here)) FROM (
        SELECT e.tool, e.result || e.arguments AS named, e.thread = %(thread)s AS here,
               extract(epoch FROM now() - e.committed_at)::float8 / 3600 AS hours
        FROM unnest(%(tools)s::text[], %(again)s::int[]) AS t (tool, again)
        LEFT JOIN LATERAL (SELECT id, value FROM public.agent_policy WHERE rule = 'same_effect' AND tool = t.tool
                           AND currency = '' ORDER BY id DESC LIMIT 1) p ON true
        CROSS JOIN LATERAL (SELECT CASE WHEN p.id IS NULL THEN t.again ELSE p.value END AS hours) n
        JOIN public.ledger_execution e ON e.subject = %(subject)s AND e.tool = t.tool
            AND e.committed_at > now() - make_interval(hours => %(longest)s)
            AND (e.thread = %(thread)s OR e.committed_at > now() - make_interval(hours => n.hours::int))
        WHERE n.hours > 0
        ORDER BY e.committed_at DESC LIMIT %(most)s) AS past
), (
    SELECT jsonb_agg(jsonb_build_array(c.call->'tool', c.call->'arguments', d.text, (
        SELECT kept.call->'arguments' FROM jsonb_array_elements(r.calls) AS kept (call)
        WHERE kept.call->'index' = c.call->'index')) ORDER BY d.id)
    FROM public.escalations_escalation e
    JOIN public.escalations_decision d ON d.escalation_id = e.id
    LEFT JOIN public.escalations_revision r ON r.id = d.revision_id AND r.number > 0
    LEFT JOIN public.escalations_revision o ON o.escalation_id = e.id AND o.number = 0
    CROSS JOIN jsonb_array_elements(coalesce(o.calls, e.payload->'calls')) AS c (call)
    WHERE e.thread = %(thread)s AND jsonb_typeof(c.call->'arguments') = 'object'
      AND (d.kind = 'reject' OR d.kind IN ('approve', 'take_over') AND r.id IS NOT NULL AND NOT EXISTS (
           SELECT FROM jsonb_array_elements(r.calls) AS kept (call)
           WHERE kept.call->'index' = c.call->'index' AND kept.call->'arguments' = c.call->'arguments'))
), (
    SELECT jsonb_object_agg(t.tool, (SELECT count(*) FROM (
        SELECT FROM public.ledger_execution e WHERE e.tool = t.tool LIMIT %(uses)s) AS first))
    FROM unnest(%(tools)s::text[], %(watched)s::int[]) AS t (tool, watched)
    WHERE t.watched > 0 OR EXISTS (SELECT FROM public.agent_policy WHERE rule = 'first_use' AND tool = t.tool)
)
"""


class Knowledge(Protocol):
    """What a domain tells its rules: the object that BACKSTOP_POLICY_FACTS names."""

    def ask(self, conn: Connection[Any], *, subject: int, calls: Sequence[GatedCall]) -> Cursor[Any]:
        """Send one statement whose one row is one JSON object. Fetches nothing; `backstop.subject` is set."""

    def named(self, arguments: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a call's arguments with what they name said in the one way that results say it."""

    def currencies(self, conn: Connection[Any]) -> list[str]:
        """Return the currencies that amounts have here, for the pages of the limits."""

    @property
    def always(self) -> Sequence[tuple[str, str]]:
        """Return title and sentence of each of its rules that has no number, for the same pages."""


def facts(conn: Connection[Any], *, thread: UUID, subject: int, on_behalf_of: int, calls: Sequence[ValidCall]) -> Facts:
    """Return what the rules need to know about these calls, for one round trip; for what only reads, nothing.

    `conn` is an autocommit connection, or in a transaction, of which the subject is set then.
    """
    writing = {call.tool.name: call.tool for call in calls if call.tool.writes}
    if not writing:
        return Facts()
    scopes = {"customer": f"customer:{subject}", "staff": f"staff:{on_behalf_of}", "conversation": f"conversation:{thread}"}
    asked = scopes | {
        "thread": thread,
        "subject": subject,
        "today": timezone.localdate(),
        "tools": list(writing),
        "again": [tool.again_after for tool in writing.values()],
        "watched": [tool.watch_first for tool in writing.values()],
        "longest": LONGEST,
        "most": MOST_PAST,
        "uses": MOST_USES,
    }
    with conn.pipeline():  # one implicit transaction, in which the subject is set
        conn.execute("SELECT set_config('backstop.subject', %s, true)", (str(subject),))
        found, known = conn.execute(FACTS, asked), _knowledge().ask(conn, subject=subject, calls=calls)
    (domain,) = known.fetchone() or ({},)
    return _read(found.fetchone() or (None,) * 5, domain=domain, calls=calls, rules={scopes[of]: rule for of, rule in SCOPES})


def version(conn: Connection[Any]) -> str:
    """Return the version of the whole policy: the newest row's number."""
    row = conn.execute("SELECT coalesce(max(id), 0) FROM public.agent_policy").fetchone()
    return f"policy {row[0] if row else 0}"


def needs(calls: Sequence[GatedCall], facts: Facts) -> Literal[1, 2]:
    """Return how many reviewers have to sign this batch."""
    return 2 if list(rules.second_reviewer(calls, facts)) else 1


def _read(found: Sequence[Any], *, domain: Mapping[str, Any], calls: Sequence[ValidCall], rules: Mapping[str, str]) -> Facts:
    numbers, sums, past, turned_down, uses = found
    tools = {**registry(), **{call.tool.name: call.tool for call in calls}}

    def of(tool: str, arguments: Mapping[str, Any]) -> Effect:
        return effect(tools[tool], arguments=_knowledge().named(arguments, domain))

    return Facts(
        numbers={(rule, tool, code): Limit(value=value, version=i) for rule, tool, code, value, i in numbers or ()},
        effects={call.index: of(call.tool.name, call.plain) for call in calls},
        past=[Past(effect=of(tool, given), hours=hours, here=here) for tool, given, hours, here in past or ()],
        turned_down=[
            TurnedDown(effect=of(tool, given), reason=reason)
            for tool, given, reason, instead in turned_down or ()
            # an edit of what makes no difference to the effect, such as of a reason, has not turned the effect down
            if tool in tools and not (instead and of(tool, instead) == of(tool, given))
        ],
        uses=uses or {},
        sums={(rules[scope], currency): amount for scope, currency, amount in sums or ()},
        domain=domain,
    )


def _knowledge() -> Knowledge:
    found: Knowledge = wiring.plugged("BACKSTOP_POLICY_FACTS")
    return found
