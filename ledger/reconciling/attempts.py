"""Attempts that a worker left open: it is gone, and what it tried was neither applied nor answered."""

from collections.abc import Iterator

from ledger import sentences
from ledger.marks import Mark
from ledger.reconciling.declaring import Check, Disagreement, Fact, Looking, Row

# A step that was tried again has an outcome by now; a conversation that is not finished is tried again by its sweep.
LEFT_OPEN = """
SELECT a.id, a.thread, a.ai_message_id, a.subject, a.on_behalf_of, a.calls, a.opened_at, c.id AS conversation
FROM public.ledger_attempt a
JOIN public.agent_thread t ON t.thread = a.thread AND t.state IN ('idle', 'waiting')
LEFT JOIN public.agent_conversation c ON c.thread = a.thread
WHERE (%(after)s::timestamptz IS NULL OR a.opened_at > %(after)s) AND a.opened_at <= %(upto)s
  AND a.opened_at < now() - %(quiet)s AND (t.leased_until IS NULL OR t.leased_until < now())
  AND NOT EXISTS (SELECT FROM public.ledger_attempt_outcome o WHERE o.thread = a.thread AND o.ai_message_id = a.ai_message_id)
  AND NOT EXISTS (SELECT FROM public.ledger_attempt later WHERE later.thread = a.thread
                  AND later.ai_message_id = a.ai_message_id AND later.opened_at > a.opened_at)
ORDER BY a.opened_at
"""


def left_open(looking: Looking) -> Iterator[Disagreement]:
    """Yield the newest attempt at each step that nobody finished."""
    for row in looking.chunks(LEFT_OPEN, table="ledger_attempt", key="opened_at"):
        yield _left_open(row)


def _left_open(row: Row) -> Disagreement:
    calls = [(sentences.proposed(tool=call["tool"], arguments=call["arguments"]), call) for call in row["calls"]]
    moved = [found for _, call in calls if (found := sentences.amount(tool=call["tool"], arguments=call["arguments"]))]
    amount, currency = max(moved, default=(None, ""))
    name = f"C-{row['conversation']}"
    return Disagreement(
        object=f"attempt:{row['id']}",
        about=f"Attempt of {name}",
        sentence=f"An attempt in conversation {name} was left open. Nothing of it was applied.",
        detail="Its worker stopped, and the conversation was not gone on with.",
        facts=tuple(
            Fact(name=f"Call {number}", ours=said, theirs="not applied", differs=True)
            for number, (said, _) in enumerate(calls, 1)
        ),
        exits=("replay_thread", "compensate"),
        subject=row["subject"],
        thread=row["thread"],
        ai_message_id=row["ai_message_id"],
        requested_by=row["on_behalf_of"],
        amount_minor=amount,
        currency=currency,
    )


CHECKS = (
    Check(
        name="ledger.attempts",
        holds="Every attempt has its outcome.",
        mark=Mark(state="undone", icon="circle-dashed", word="Left open"),
        ours="The attempt says",
        theirs="The ledger says",
        look=left_open,
    ),
)
