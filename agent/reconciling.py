"""What a conversation and the ledger disagree about: what was applied and never told, and threads that nobody goes on with."""

import json
from collections.abc import Iterator
from typing import Any

from django.utils import timezone

from ledger import sentences
from ledger.marks import Mark
from ledger.reconciling import Check, Disagreement, Fact, Looking, Row

EXITS = ("replay_thread", "compensate")
# A conversation that is not finished goes on by itself, or is one of those that were left alone.
UNTOLD = """
SELECT e.thread, e.subject, e.on_behalf_of, e.ai_message_id, max(c.id) AS conversation, max(e.committed_at) AS at,
    bool_or(EXISTS (SELECT FROM public.agent_thread t WHERE t.thread = e.thread)) AS driven,
    jsonb_agg(jsonb_build_object('tool', e.tool, 'arguments', e.arguments, 'result', e.result)
              ORDER BY e.committed_at, e.call_index)::text AS calls
FROM public.ledger_execution e LEFT JOIN public.agent_conversation c ON c.thread = e.thread
WHERE (%(after)s::timestamptz IS NULL OR e.committed_at > %(after)s) AND e.committed_at <= %(upto)s
  AND e.committed_at < now() - %(quiet)s
  AND NOT EXISTS (SELECT FROM public.agent_transcript_entry t
                  WHERE t.thread = e.thread AND t.message_id = e.ai_message_id || ':' || e.call_index)
  AND NOT EXISTS (SELECT FROM public.agent_thread t WHERE t.thread = e.thread
                  AND (t.state IN ('running', 'stuck') OR t.leased_until > now()))
GROUP BY e.thread, e.subject, e.on_behalf_of, e.ai_message_id
"""
# A sweep drives what can go on, and puts before a person what cannot: these were left by both.
HALTED = """
SELECT t.thread, t.state, t.activity, c.id AS conversation, c.subject, coalesce(t.leased_until, t.progressed_at) AS since, (
    SELECT m.author FROM public.agent_staff_message m WHERE m.thread = t.thread AND m.state <> 'cancelled'
    ORDER BY m.number DESC LIMIT 1) AS on_behalf_of
FROM public.agent_thread t JOIN public.agent_conversation c ON c.thread = t.thread
WHERE t.state IN ('running', 'stuck') AND coalesce(t.leased_until, t.progressed_at) < now() - %(quiet)s
  AND (t.state = 'stuck' OR t.next_sweep_at < now() - %(quiet)s)
  AND NOT EXISTS (SELECT FROM public.escalations_escalation e WHERE e.thread = t.thread
                  AND e.kind <> 'dirty_state' AND e.state IN ('open', 'claimed', 'decided'))
ORDER BY t.thread
"""


def untold(looking: Looking) -> Iterator[Disagreement]:
    """Yield the steps that were applied, but of which the conversation has no answer."""
    for row in looking.chunks(UNTOLD, table="ledger_execution", key="committed_at"):
        yield _untold(row)


def _untold(row: Row) -> Disagreement:
    done = [sentences.applied(**call) for call in _read(row["calls"])]
    moved = [found for call in _read(row["calls"]) if (found := sentences.amount(tool=call["tool"], arguments=call["arguments"]))]
    amount, currency = max(moved, default=(None, ""))
    return Disagreement(
        object=f"untold:{row['thread']}:{row['ai_message_id']}",
        about=done[0],
        sentence=f"The conversation does not know that this was done: {'; '.join(done)}.",
        detail="It was applied, and the conversation has no answer to it. Nobody works on the conversation now.",
        facts=tuple(
            Fact(name=f"Call {number}", ours=said, theirs="no answer", differs=True) for number, said in enumerate(done, 1)
        ),
        exits=EXITS if row["driven"] else EXITS[1:],  # what is no thread any more cannot be replayed
        subject=row["subject"],
        thread=row["thread"],
        ai_message_id=row["ai_message_id"],
        requested_by=row["on_behalf_of"],
        amount_minor=amount,
        currency=currency,
    )


def halted(looking: Looking) -> Iterator[Disagreement]:
    """Yield the conversations that are unfinished, and that nobody drives or is asked about."""
    for row in looking.rows(HALTED):
        name = f"C-{row['conversation']}"
        yield Disagreement(
            object=f"halted:{row['thread']}",
            about=f"Conversation {name}",
            sentence=f"Conversation {name} is not finished, and nobody goes on with it.",
            detail=f"The last word of its worker: {row['activity']}." if row["activity"] else "",
            facts=(
                Fact(name="State", ours=row["state"], theirs="no worker, no question", differs=True),
                Fact(name="Since", ours=f"{timezone.localtime(row['since']):%d %b %Y %H:%M:%S}", theirs="nothing"),  # this time
            ),
            exits=EXITS,
            subject=row["subject"],
            thread=row["thread"],
            requested_by=row["on_behalf_of"],
        )


def _read(calls: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(calls)
    return found


CHECKS = (
    Check(
        name="agent.untold",
        holds="Conversations know what was applied for them.",
        mark=Mark(state="uncertain", icon="messages-square", word="Never told"),
        ours="The ledger says",
        theirs="The conversation says",
        look=untold,
        counts={"executions": "SELECT count(*) FROM public.ledger_execution"},
    ),
    Check(
        name="agent.halted",
        holds="No conversation was left alone.",
        mark=Mark(state="uncertain", icon="timer", word="Left alone"),
        ours="The conversation says",
        theirs="Workers and people",
        look=halted,
    ),
)
