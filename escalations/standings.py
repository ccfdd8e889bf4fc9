"""What is proposed in many escalations, as it is now: newest revision, its newest preview, and who signed just that."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

# A signature counts for the preview of the newest revision that shows what its own showed.
NEWEST = """
SELECT r.escalation_id, r.id, r.number, r.author, r.as_person, r.calls::text, p.id, p.outcome, p.made_at, p.needs,
    p.changes::text, p.messages::text, p.failure::text, s.signers
FROM unnest(%s::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (SELECT id, escalation_id, number, author, as_person, calls FROM public.escalations_revision
    WHERE escalation_id = wanted.id ORDER BY number DESC LIMIT 1) r
LEFT JOIN LATERAL (SELECT * FROM public.escalations_preview WHERE revision_id = r.id ORDER BY id DESC LIMIT 1) p ON true
LEFT JOIN LATERAL (SELECT array_agg(signature.reviewer ORDER BY signature.id) AS signers
    FROM public.escalations_signature signature JOIN public.escalations_preview seen ON seen.id = signature.preview_id
    WHERE signature.revision_id = r.id AND seen.digest = p.digest AND seen.verdicts = p.verdicts) s ON true
"""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The newest revision of one escalation, and what its newest preview showed. Without a preview its numbers are None."""

    escalation: int
    revision: int  # its number
    revision_id: int
    author: int | None  # None: the agent
    as_person: bool
    calls: list[dict[str, Any]]
    preview: int | None
    outcome: str | None  # None: not made yet
    made_at: Any
    needs: int | None
    changes: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    failure: dict[str, Any]
    signers: list[int]

    @property
    def clean(self) -> bool:
        """Return whether it ran through, so that it can be signed."""
        return self.outcome == "clean"


def newest(escalations: Sequence[int]) -> dict[int, Standing]:
    """Return how those escalations stand that propose something, in one query."""
    if not escalations:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(NEWEST, [list(escalations)])
        found = [_standing(row) for row in cursor.fetchall()]
    return {standing.escalation: standing for standing in found}


def _standing(row: tuple[Any, ...]) -> Standing:
    names = (
        *("escalation", "revision_id", "revision", "author", "as_person", "calls", "preview", "outcome", "made_at", "needs"),
        *("changes", "messages", "failure", "signers"),
    )
    found = dict(zip(names, row, strict=True))
    empty = {"changes": "[]", "messages": "[]", "failure": "{}"}
    read = {name: json.loads(found[name] or empty.get(name, "")) for name in ("calls", *empty)}
    return Standing(**found | read | {"signers": found["signers"] or []})
