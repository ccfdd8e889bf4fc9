"""What a run must not have left: a broken invariant, books that disagree with the provider, a promise that was not kept."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.chaos.people import Promises
from sandbox.chaos.places import Place, manage

KEPT = """
SELECT wanted.id, wanted.conversation FROM unnest(%s::uuid[], %s::bigint[]) AS wanted (id, conversation)
WHERE NOT EXISTS (
    SELECT FROM public.agent_staff_message m JOIN public.agent_conversation c USING (thread)
    WHERE m.id = wanted.id AND c.id = wanted.conversation)
"""
BEGUN = """
SELECT wanted.id FROM unnest(%s::bigint[]) AS wanted (id)
WHERE NOT EXISTS (SELECT FROM public.agent_conversation c WHERE c.id = wanted.id)
"""
DECIDED = """
SELECT wanted.id FROM unnest(%s::bigint[]) AS wanted (id)
WHERE NOT EXISTS (SELECT FROM public.escalations_decision d WHERE d.escalation_id = wanted.id)
"""


@dataclass(frozen=True, kw_only=True)
class Violation:
    """What is not as it must be: the invariant's name, its sentence, and the rows that show it."""

    invariant: str
    says: str
    rows: list[Any]


def found(place: Place, promises: Promises) -> list[Violation]:
    """Return everything that is wrong with an instance in which all is quiet."""
    return [*broken(place.data), *_promises(place, promises)]


def broken(data: Path) -> Iterator[Violation]:
    """Yield what the instance's own command finds, in its books and beside the sandbox's money log."""
    done = manage("check_invariants", "--json", "--quiet", BACKSTOP_DATA=str(data), BACKSTOP_LOGIN="keeper")
    try:
        report = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        yield Violation(invariant="chaos.could_be_checked", says="check_invariants did not come to its end.", rows=[last])
        return
    for item in report["violations"]:
        yield Violation(invariant=item["invariant"], says=item["says"], rows=item["rows"] or [item.get("error")])
    provider = report["provider"]
    for item in provider["violations"]:
        yield Violation(invariant=item["invariant"], says=provider["says"], rows=[item["row"]])
    if not provider["compared"] and not provider["violations"]:
        yield Violation(invariant="chaos.was_compared", says=provider["says"], rows=[])


def _promises(place: Place, promises: Promises) -> Iterator[Violation]:
    with place.connect("superuser") as conn:
        messages = conn.execute(KEPT, (list(promises.messages), list(promises.messages.values()))).fetchall()
        begun = conn.execute(BEGUN, (list(promises.conversations),)).fetchall()
        decided = conn.execute(DECIDED, (list(promises.decisions),)).fetchall()
    for name, says, rows in (
        ("chaos.message_was_kept", "Every message that the server took is in its conversation.", messages),
        ("chaos.conversation_was_kept", "Every conversation that the server began is there.", begun),
        ("chaos.decision_was_kept", "Every decision that the server took is there.", decided),
        ("chaos.answers_make_sense", "People got answers only that they can do something with.", promises.odd),
    ):
        if rows:
            yield Violation(invariant=name, says=says, rows=[*rows])
