"""What people allowed, read from their decisions: a thread's state names a decision, it never carries its authority."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from agent.validation import ProposedCall

# A decision is about one step of one thread in one generation; named anywhere else it allows nothing. An edit runs as the
# next generation of its step. What was changed before and then held or drifted is proposed again as it was changed: then the
# words that explain the change are those of an earlier revision.
PERMITTED = """
WITH RECURSIVE given AS (
    SELECT d.id, d.revision_id, d.preview_id, e.id AS escalation, e.follows_id
    FROM public.escalations_decision d
    JOIN public.escalations_escalation e ON e.id = d.escalation_id
    JOIN public.escalations_revision r ON r.id = d.revision_id
    WHERE d.id = ANY(%(decisions)s) AND d.kind IN ('approve', 'take_over')
      AND e.thread = %(thread)s AND e.ai_message_id = %(ai_message_id)s
      AND e.generation + CASE WHEN r.number > 0 THEN 1 ELSE 0 END = %(generation)s
    ORDER BY d.id DESC LIMIT 1
), earlier (escalation, follows_id, revision_id, depth) AS (
    SELECT escalation, follows_id, revision_id, 0 FROM given
    UNION ALL
    SELECT e.id, e.follows_id, d.revision_id, earlier.depth + 1 FROM earlier
    JOIN public.escalations_escalation e ON e.id = earlier.follows_id
    JOIN public.escalations_decision d ON d.escalation_id = e.id
    WHERE earlier.depth < 50
)
SELECT given.id AS decision, given.escalation, r.calls, r.as_person, r.author, p.digest, p.verdicts,
    coalesce((SELECT r2.text FROM earlier JOIN public.escalations_revision r2 ON r2.id = earlier.revision_id
              WHERE r2.text <> '' ORDER BY earlier.depth LIMIT 1), '') AS text,
    ARRAY(SELECT u.username FROM public.escalations_signature s
          JOIN public.escalations_preview seen ON seen.id = s.preview_id AND seen.digest = p.digest
          JOIN public.auth_user u ON u.id = s.reviewer WHERE s.revision_id = r.id ORDER BY s.id)::text[] AS names
FROM given
JOIN public.escalations_revision r ON r.id = given.revision_id
JOIN public.escalations_preview p ON p.id = given.preview_id
"""
Change = tuple[str, Any, Any]  # field, as the model sent it, as it runs


@dataclass(frozen=True, kw_only=True)
class Permission:
    """One decision's permission to run a step, as exactly what was shown."""

    decision: int
    escalation: int
    waived: tuple[Mapping[str, Any], ...] = ()  # the verdicts that held and were shown, with what they measured
    calls: tuple[ProposedCall, ...] | None = None  # what runs instead of what the model sent; None: what it sent
    digest: bytes | None = None  # of what the preview did
    performed_by: int | None = None  # the person who took the step over
    by: tuple[str, ...] = ()  # the names under it
    changes: Mapping[int, tuple[Change, ...]] = field(default_factory=dict)  # by call index
    dropped: Mapping[int, str] = field(default_factory=dict)  # why, by call index; calls that do not run


def permission(
    conn: Connection[Any],
    *,
    decisions: Sequence[int],
    thread: UUID,
    ai_message_id: str,
    generation: int,
    proposed: Sequence[ProposedCall],
) -> Permission | None:
    """Return what the newest of these decisions allows for this step in this generation, or None.

    `proposed` are the calls as the model sent them: against them it is said what people changed.
    """
    if not decisions:
        return None
    named = {"decisions": list(decisions), "thread": thread, "ai_message_id": ai_message_id, "generation": generation}
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(PERMITTED, named).fetchone()
    return _permission(row, proposed) if row else None


def _permission(row: Mapping[str, Any], proposed: Sequence[ProposedCall]) -> Permission:
    sent = {call.index: call for call in proposed}
    runs = calls_of(row["calls"])
    changes = {call.index: found for call in runs if call.index in sent and (found := _changes(sent[call.index], call))}
    dropped = dict.fromkeys(sent.keys() - {call.index for call in runs}, row["text"])
    return Permission(
        decision=row["decision"],
        escalation=row["escalation"],
        waived=tuple(verdict for verdict in row["verdicts"] if verdict["action"] == "hold"),
        calls=runs if changes or dropped else None,
        digest=bytes(row["digest"]) if row["digest"] is not None else None,
        performed_by=row["author"] if row["as_person"] else None,
        by=tuple(row["names"]),
        changes=changes,
        dropped=dropped,
    )


def calls_of(rows: Iterable[Mapping[str, Any]]) -> tuple[ProposedCall, ...]:
    """Return the calls of a revision."""

    def one(row: Mapping[str, Any]) -> ProposedCall:
        return ProposedCall(index=row["index"], id=str(row["id"]), tool=row["tool"], arguments=row["arguments"])

    return tuple(sorted((one(row) for row in rows), key=lambda call: call.index))


def _changes(sent: ProposedCall, runs: ProposedCall) -> tuple[Change, ...]:
    before, after = sent.arguments or {}, runs.arguments or {}
    return tuple((name, before.get(name), after.get(name)) for name in {**before, **after} if before.get(name) != after.get(name))
