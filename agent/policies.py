"""The numbers of the gate's rules: insert-only rows, the newest of each counts."""

from typing import Any

from psycopg import Connection

from agent.gate import Facts, Limit

NEWEST = """
SELECT DISTINCT ON (rule, tool, currency) id, rule, tool, currency, value FROM public.agent_policy
ORDER BY rule, tool, currency, id DESC
"""


def facts(conn: Connection[Any]) -> Facts:
    """Return what the rules need to know, in one statement."""
    rows = conn.execute(NEWEST).fetchall()
    limits = {(tool, currency): Limit(value=value, version=i) for i, rule, tool, currency, value in rows if rule == "per_call"}
    switches = {tool: Limit(value=value, version=i) for i, rule, tool, _, value in rows if rule == "kill_switch" and value}
    return Facts(limits=limits, paused=switches.pop("", None), paused_tools=switches)


def version(conn: Connection[Any]) -> str:
    """Return the version of the whole policy: the newest row's number."""
    row = conn.execute("SELECT coalesce(max(id), 0) FROM public.agent_policy").fetchone()
    return f"policy {row[0] if row else 0}"
