"""Revisions: what exactly is proposed. Number 0 is the agent's; a reviewer's edit, drop or take-over is the next one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from escalations import facts, policies
from escalations.rows import Row
from ledger import sentences, wiring
from ledger.fingerprints import canonical

Calls = Sequence[Mapping[str, Any]]
PARTS = ("index", "id", "tool", "arguments")


@dataclass(frozen=True, kw_only=True)
class Revision:
    """One version of the proposal."""

    id: int
    number: int
    calls: list[dict[str, Any]]
    author: int | None
    lowers: bool
    as_person: bool


def newest(conn: Connection[Any], *, escalation: int) -> Revision | None:
    """Return the newest revision; None when no calls are proposed."""
    found = _all(conn, escalation=escalation)
    return found[-1] if found else None


def proposed(conn: Connection[Any], *, escalation: int) -> Revision | None:
    """Return the agent's own."""
    found = _all(conn, escalation=escalation)
    return found[0] if found else None


def _all(conn: Connection[Any], *, escalation: int) -> list[Revision]:
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            "SELECT id, number, calls::text AS calls, author, lowers, as_person FROM public.escalations_revision"
            " WHERE escalation_id = %s ORDER BY number",
            (escalation,),
        ).fetchall()
    return [Revision(**row | {"calls": json.loads(row["calls"])}) for row in rows]


def add(
    conn: Connection[Any],
    *,
    escalation: int,
    number: int,
    calls: Calls,
    author: int | None = None,
    lowers: bool = False,
    as_person: bool = False,
    text: str = "",
) -> int:
    """Store a revision with the hash of exactly that and return its id."""
    kept = [{part: call[part] for part in PARTS} for call in calls]
    inserted = conn.execute(
        "INSERT INTO public.escalations_revision (escalation_id, number, calls, calls_hash, author, lowers, as_person, text)"
        " VALUES (%s, %s, %s, sha256(convert_to(%s, 'UTF8')), %s, %s, %s, %s) RETURNING id",
        (escalation, number, Jsonb(kept), canonical(kept), author, lowers, as_person, text),
    ).fetchone()
    assert inserted is not None
    return int(inserted[0])


def changed(calls: Calls, *, proposed: Revision) -> list[dict[str, Any]]:
    """Return the calls of the next revision: those of the agent's that stay, with new arguments, in its order.

    Raises `EditRefused` when none stays, or one is not the agent's.
    """
    known = {call["index"]: call for call in proposed.calls}
    wanted = {call["index"]: call["arguments"] for call in calls}
    if not wanted or len(wanted) != len(calls) or not wanted.keys() <= known.keys():
        raise facts.EditRefused(faults=())
    return [known[index] | {"arguments": wanted[index]} for index in sorted(wanted)]


def check(calls: Calls, *, row: Row) -> None:
    """Raise `EditRefused`, with the messages that the model would get, unless all calls are sound."""
    faults = wiring.plugged("BACKSTOP_EDITS")(calls, subject=row["subject"])
    if faults:
        raise facts.EditRefused(faults=faults)


def lowers(calls: Calls, *, proposed: Revision) -> bool:
    """Return whether the calls only lower what the agent proposed; the database agrees or says no."""

    def amount(call: Mapping[str, Any]) -> tuple[int, str] | None:
        return sentences.amount(tool=call["tool"], arguments=call["arguments"])

    return policies.lowers(proposed.calls, calls, amount=amount)
