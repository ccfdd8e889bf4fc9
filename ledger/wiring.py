"""Where the engine finds what plugs into it: dotted paths in settings, imported once."""

from functools import cache
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string


@cache
def plugged(setting: str) -> Any:
    """Return the object that the setting's dotted path names, such as `plugged("BACKSTOP_TOOLS")`."""
    return import_string(getattr(settings, setting))


@cache
def plugged_all(setting: str) -> tuple[Any, ...]:
    """Return the objects that a list of dotted paths names, in order."""
    return tuple(import_string(path) for path in getattr(settings, setting))
