"""Who may break the demonstration: everybody who may read its conversations. What is sent to the agent, only support may send."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse

from agent.permissions import check_user_can_read, user_can_read
from sandbox.breaking import demonstration


def check_user_can_break(user: Any) -> None:
    """Raise PermissionDenied unless the person has a role."""
    check_user_can_read(user)


def user_can_break(user: Any) -> bool:
    """Return whether the page exists here and the person may open it."""
    return user_can_read(user) and demonstration.is_on()


def only_here(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Let a page exist in a demonstration only."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not demonstration.is_on():
            raise Http404
        return view(request, *args, **kwargs)

    return guarded
