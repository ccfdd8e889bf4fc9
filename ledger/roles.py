"""Who a person is: support, reviewer or admin. What they may do is said in each app's permissions.py."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase

SUPPORT, REVIEWER, ADMIN = "support", "reviewer", "admin"


def roles_of(user: Any) -> frozenset[str]:
    """Return the person's roles, read once a request; nobody has any before logging in."""
    if not (user.is_authenticated and user.is_active):
        return frozenset()
    if not hasattr(user, "_roles"):
        user._roles = frozenset(user.groups.values_list("name", flat=True))
    found: frozenset[str] = user._roles
    return found


def check_role(user: Any, *allowed: str) -> None:
    """Raise PermissionDenied unless the person has one of the roles."""
    if not roles_of(user) & set(allowed):
        raise PermissionDenied("Your role does not allow this.")


def needs(check: Callable[[Any], None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Guard a view with a permission function such as `check_user_can_review`."""

    def guard(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            check(request.user)
            return view(request, *args, **kwargs)

        return guarded

    return guard
