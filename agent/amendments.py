"""How an admin changes a number: stricter at once, looser when a second admin confirms. The database refuses the rest.

The verbs take a connection in a transaction; rows of the policy are only ever added.
"""

from dataclasses import dataclass
from typing import Any, Literal

from psycopg import Connection, errors

from agent.numbers import RULES, SWITCH

# The same lock as the trigger's: what is read under it still counts when the row is added.
LOCK = "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('agent_policy ' || %s || ' ' || %s, 0))"
NOW = """
SELECT value FROM public.agent_policy WHERE rule = %(rule)s AND tool = %(tool)s AND currency IN (%(currency)s, '')
ORDER BY currency = %(currency)s DESC, id DESC LIMIT 1
"""
SET = """
INSERT INTO public.agent_policy (rule, tool, currency, value, previous, reason, set_by, confirmed_by, request_id)
VALUES (%(rule)s, %(tool)s, %(currency)s, %(value)s, %(previous)s, %(reason)s, %(set_by)s, %(confirmed_by)s, %(request)s)
"""
ASK = """
INSERT INTO public.agent_policy_request (rule, tool, currency, value, reason, asked_by)
VALUES (%(rule)s, %(tool)s, %(currency)s, %(value)s, %(reason)s, %(set_by)s)
"""
END = """
UPDATE public.agent_policy_request SET ended_at = now(), ended_by = %(user)s, outcome = %(outcome)s
WHERE id = %(id)s AND ended_at IS NULL
RETURNING rule, tool, currency, value, reason, asked_by
"""
ASKED_BY = "SELECT asked_by, outcome FROM public.agent_policy_request WHERE id = %s"

Ending = Literal["confirmed", "refused", "withdrawn"]


class NothingChanges(Exception):
    """That is what counts already."""


class AlreadyAsked(Exception):
    """Somebody has asked for a change of this number, and it waits: confirm, refuse or withdraw that one first."""


class AlreadyEnded(Exception):
    """This request has ended already."""


class NotAllowed(Exception):
    """What one admin asks for, another one confirms or refuses; only who asked may withdraw it."""


class Unknown(Exception):
    """There is no such request."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One number that is to count from now on."""

    rule: str
    tool: str = ""
    currency: str = ""
    value: int | None

    @property
    def key(self) -> dict[str, Any]:
        """Return its fields as parameters."""
        return {"rule": self.rule, "tool": self.tool, "currency": self.currency, "value": self.value}


def current(conn: Connection[Any], *, rule: str, tool: str, currency: str) -> int | None:
    """Return the number that counts now: of the currency, else of every currency, else the default in code."""
    row = conn.execute(NOW, {"rule": rule, "tool": tool, "currency": currency}).fetchone()
    return row[0] if row else _rule(rule).default_of(tool)


def make(conn: Connection[Any], *, change: Change, reason: str, user: int) -> Literal["set", "asked"]:
    """Set a stricter number at once, or ask for a looser one. Raises NothingChanges or AlreadyAsked."""
    conn.execute(LOCK, (change.rule, change.tool))
    now = current(conn, rule=change.rule, tool=change.tool, currency=change.currency)
    if now == change.value or not (now or change.value or _limits(change.rule)):
        raise NothingChanges
    given = change.key | {"reason": reason, "set_by": user, "previous": now, "confirmed_by": None, "request": None}
    if not _rule(change.rule).loosens(old=now, new=change.value):
        conn.execute(SET, given)
        return "set"
    try:
        with conn.transaction():
            conn.execute(ASK, given)
    except errors.UniqueViolation as error:
        raise AlreadyAsked from error
    return "asked"


def end(conn: Connection[Any], *, request: int, outcome: Ending, user: int) -> Change:
    """Confirm a request, and let its number count from now on; or refuse or withdraw it.

    Raises Unknown, NotAllowed or AlreadyEnded: of two admins at once, one ends it.
    """
    row = conn.execute(ASKED_BY, (request,)).fetchone()
    if row is None:
        raise Unknown
    if row[1] is not None:
        raise AlreadyEnded
    if (row[0] == user) != (outcome == "withdrawn"):
        raise NotAllowed
    ended = conn.execute(END, {"id": request, "user": user, "outcome": outcome}).fetchone()
    if ended is None:
        raise AlreadyEnded
    rule, tool, currency, value, reason, asked_by = ended
    change = Change(rule=rule, tool=tool, currency=currency, value=value)
    if outcome == "confirmed":
        conn.execute(LOCK, (rule, tool))
        now = current(conn, rule=rule, tool=tool, currency=currency)
        names = {"reason": reason, "set_by": asked_by, "confirmed_by": user, "request": request}
        conn.execute(SET, change.key | names | {"previous": now})
    return change


def _rule(name: str) -> Any:
    return RULES.get(name, SWITCH)


def _limits(rule: str) -> bool:
    """Return whether nothing and zero differ: a limit of zero holds everything, an hour of zero is off."""
    return not _rule(rule).less_is_looser
