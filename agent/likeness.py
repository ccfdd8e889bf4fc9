"""What makes a call the same call again: its tool, and those of its arguments that are no free text. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from agent.tools import Tool

Effect = tuple[str, ...]


def effect(tool: Tool, *, arguments: Mapping[str, Any]) -> Effect:
    """Return what the call does; two calls that do the same have the same effect.

    `arguments` are JSON values. What is left out counts as null; a tool that declares nothing counts every argument.
    """
    names = tool.effect or tuple(sorted(tool.arguments.model_fields))
    return (tool.name, *(json.dumps(arguments.get(name), sort_keys=True) for name in names))
