"""Where the engine finds what plugs into it: dotted paths in settings, imported once."""

from functools import cache
from importlib import import_module
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string


@cache
def plugged(setting: str) -> Any:
    """Return the object or module that the setting's dotted path names, such as `plugged("BACKSTOP_TOOLS")`."""
    path: str = getattr(settings, setting)
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:  # the module is there, but something that it imports is not
            raise
    return import_string(path)


@cache
def plugged_all(setting: str) -> tuple[Any, ...]:
    """Return the objects that a list of dotted paths names, in order."""
    return tuple(import_string(path) for path in getattr(settings, setting))
