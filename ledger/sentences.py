"""Tool calls in words and amounts, through the tools setting: the ledger itself does not know what a tool does."""

import json
import re
from functools import cache
from typing import Any

from pydantic import ValidationError

from ledger import wiring


@cache
def tools() -> dict[str, Any]:
    """Return the installed tools by name."""
    return {tool.name: tool for tool in wiring.plugged("BACKSTOP_TOOLS")}


def proposed(*, tool: str, arguments: Any) -> str:
    """Return what a call asks for; the tool's name in words when nobody can read its arguments."""
    known, valid = tools().get(tool), _valid(tool, arguments)
    if known is None:
        return words(tool)
    return str(known.proposed(valid)) if valid is not None else f"{words(tool)} (arguments not valid)"


def words(tool: str) -> str:
    """Return a tool's name as words: "QueueRefund" is "Queue refund"; what is no such name stays as it is."""
    if not re.fullmatch(r"(?:[A-Z][a-z0-9]*)+", tool):
        return tool
    return " ".join(re.findall(r"[A-Z][a-z0-9]*", tool)).capitalize()


def applied(*, tool: str, arguments: Any, result: Any) -> str:
    """Return what an applied call did; its request or its tool in words when the tool has changed since and cannot say."""
    known, valid = tools().get(tool), _valid(tool, arguments)
    if known is None or valid is None:  # the tool has changed since, or is gone
        return words(tool)
    try:
        return str(known.applied(valid, result))
    except (KeyError, TypeError):  # a result from before the tool changed
        return proposed(tool=tool, arguments=arguments)


def amount(*, tool: str, arguments: Any) -> tuple[int, str] | None:
    """Return what a call moves: minor units and currency; None when it moves nothing or cannot be read."""
    known, valid = tools().get(tool), _valid(tool, arguments)
    moved = known.amount(valid) if known and valid is not None else None
    return (moved.minor, moved.currency) if moved else None


def does(tool: str) -> str:
    """Return whether a tool may "write", only ever can "read", or can "ask" a person; whatever is unknown may write."""
    known = tools().get(tool)
    if known is not None and known.asks_person:
        return "ask"
    return "read" if known is not None and not known.writes else "write"


def money(minor: int, currency: str) -> str:
    """Return an amount as people read it."""
    return str(wiring.plugged("BACKSTOP_MONEY")(minor, currency))


def _valid(tool: str, arguments: Any) -> Any:
    known = tools().get(tool)
    if known is None or not isinstance(arguments, dict):
        return None
    try:
        return known.arguments.model_validate_json(json.dumps(arguments))
    except ValidationError:
        return None
