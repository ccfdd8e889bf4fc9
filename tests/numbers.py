"""The numbers of the gate's rules, set as two admins may set any."""

from typing import Any

from psycopg import Connection

REPEATED = ("IssueCreditMemo", "QueueRefund")  # held by default when the same is asked for within a day
SET = """
WITH asked AS (
    INSERT INTO public.agent_policy_request (rule, tool, currency, value, reason, asked_by, ended_at, ended_by, outcome)
    VALUES (%(rule)s, %(tool)s, %(currency)s, %(value)s, 'test', 1, now(), 2, 'confirmed') RETURNING id
)
INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by, confirmed_by, request_id)
SELECT %(rule)s, %(tool)s, %(currency)s, %(value)s, 'test', 1, 2, id FROM asked
"""


def put(conn: Connection[Any], rule: str, value: int | None, *, tool: str = "", currency: str = "") -> None:
    """Set a number as the owner; None switches the rule off."""
    conn.execute(SET, {"rule": rule, "tool": tool, "currency": currency, "value": value})


def allow_repeats(conn: Connection[Any]) -> None:
    """Let the same be asked for again and again: tests that share an instance ask its few customers for the same things."""
    for tool in REPEATED:
        put(conn, "same_effect", None, tool=tool)
