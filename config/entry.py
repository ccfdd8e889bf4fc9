"""Who gets in: every page needs a log-in but those that say otherwise."""

from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest


class LoginRequired(LoginRequiredMiddleware):
    """Like Django's, but a page that needs no log-in does not have a session read for it: it works while PostgreSQL is down."""

    def process_view(self, request: HttpRequest, view_func: Any, view_args: Any, view_kwargs: Any) -> Any:
        """Return a redirect to the log-in, or None to go on."""
        if not getattr(view_func, "login_required", True):
            return None
        return super().process_view(request, view_func, view_args, view_kwargs)
