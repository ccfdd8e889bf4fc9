"""Above which amount a second reviewer has to agree to something that no single tool is asked for."""

from typing import Any

from psycopg import Connection

from agent.tools import registry

NEWEST = """
SELECT DISTINCT ON (tool, currency) tool, currency, value FROM public.agent_policy
WHERE rule = 'second_reviewer' ORDER BY tool, currency, id DESC
"""


def smallest(conn: Connection[Any], *, currency: str) -> int | None:
    """Return the smallest such limit of all tools in a currency, in minor units; None when no tool has one."""
    numbers = {(tool, code): value for tool, code, value in conn.execute(NEWEST).fetchall()}
    limits = [
        numbers[tool.name, currency] if (tool.name, currency) in numbers else numbers.get((tool.name, ""), tool.second_above)
        for tool in registry().values()
        if tool.writes
    ]
    return min((limit for limit in limits if limit is not None), default=None)
