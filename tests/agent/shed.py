"""A tool from another domain, as an adopter would declare it."""

from typing import Any

from psycopg import Connection

from agent.tools import Arguments, Tool
from outbox.messages import Cause


class PaintTheShed(Arguments):
    """Paint the shed."""

    colour: str


def paint(conn: Connection[Any], asked: PaintTheShed, cause: Cause) -> dict[str, Any]:
    """Paint."""
    return {"colour": asked.colour}


TOOLS = [
    Tool(
        name="PaintTheShed",
        arguments=PaintTheShed,
        run=paint,
        proposed=lambda asked: f"Paint the shed {asked.colour}",
        applied=lambda asked, result: f"Painted the shed {result['colour']}",
    )
]
