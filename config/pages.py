"""The pages of the frame itself: logging in and out, where a person starts, and whether this process is well."""

from typing import Any

import redis
from axes.helpers import get_client_ip_address
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, connection
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from config import instance
from ledger.roles import ADMIN, REVIEWER, SUPPORT, roles_of

LONGEST_NAME = 150
STARTS = {REVIEWER: "escalations:inbox", ADMIN: "ledger:executions", SUPPORT: "agent:conversations"}


class LoginForm(AuthenticationForm):
    """Name and password. A name that cannot be one is wrong before anybody counts or looks it up."""

    def clean(self) -> dict[str, Any]:
        """Return the checked fields, or raise that they are wrong."""
        if len(self.cleaned_data.get("username", "")) > LONGEST_NAME:
            raise self.get_invalid_login_error()
        return super().clean()


class Login(auth.LoginView):
    """The login page; django-axes counts the tries and pauses the pair of name and address."""

    form_class = LoginForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add whether this installation was started with demo log-ins."""
        return super().get_context_data(demo=bool(instance.value("logins")), **kwargs)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show the page again and say how many tries are left."""
        left = tries_left(self.request, form.data.get("username", ""))
        context = self.get_context_data(form=form, tries_left=left, pause_minutes=pause_minutes())
        return self.render_to_response(context, status=422)


class Logout(auth.LogoutView):
    """Ends the session; POST only, as every change of state."""


def tries_left(request: HttpRequest, username: str) -> int:
    """Return how often this name may still be tried from this address before the pause."""
    tried = AccessAttempt.objects.filter(username=username.replace("\x00", "")[:255], ip_address=get_client_ip_address(request))
    failures: int = tried.aggregate(n=Sum("failures_since_start"))["n"] or 0
    return max(0, settings.AXES_FAILURE_LIMIT - failures)


def pause_minutes() -> int:
    """Return how long the pause after too many tries is."""
    return round(settings.AXES_COOLOFF_TIME * 60)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Send a person to the page where their work starts."""
    roles = roles_of(request.user)
    for role, route in STARTS.items():
        if role in roles:
            return redirect(route)
    raise PermissionDenied("You have no role yet. Ask an admin for one.")


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Say whether this process reaches PostgreSQL (503 if not) and the broker (a loss costs only latency)."""
    found: dict[str, Any] = {"database": database_answers(), "broker": broker_answers()}
    return JsonResponse(found, status=200 if found["database"] else 503)


def database_answers() -> bool:
    """Return whether PostgreSQL answers."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def broker_answers() -> bool:
    """Return whether the broker answers within half a second."""
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5)
    try:
        return bool(client.ping())
    except (redis.RedisError, OSError):
        return False
    finally:
        client.close()
