"""What a person sees when a request fails: one page, one sentence, and whether anything was changed."""

import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import psycopg
import structlog
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

log = structlog.get_logger()

# Through Django, and from the verbs that are given the connection under it.
LOST = (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError)
SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, kw_only=True)
class Page:
    """The words of one kind of failure."""

    title: str
    text: str
    icon: str = "triangle-alert"


PAGES = {
    400: Page(title="That request makes no sense", text="Nothing was changed. Go back and try again."),
    403: Page(title="Not yours to do", text="Nothing was changed.", icon="lock"),
    404: Page(title="Nothing here", text="It does not exist, or it is not yours to see.", icon="file-search"),
    405: Page(title="That page does not take this", text="Nothing was changed. Open it by its link instead."),
    413: Page(title="That is too long", text="Nothing was changed. A request may hold 64 kB."),
    429: Page(title="Too many tries", text="Logging in is paused.", icon="timer"),
    500: Page(title="This page broke", text="Nothing was changed by it. Try again; if it breaks again, report it."),
}
# While PostgreSQL starts again, for a second or two: everything that was committed is there.
DATABASE_DOWN = Page(
    title="The database does not answer",
    text="What was saved is safe. Try again in a moment.",
    icon="database",
)
# A failure may come after the commit, or hide whether there was one: nobody is told that nothing happened.
BROKE_WHILE_CHANGING = Page(
    title="This page broke",
    text="It may have been carried out or not: look before you try again. If it breaks again, report it.",
)
DATABASE_LOST = Page(
    title="The database does not answer",
    text="What you sent may have been saved or not: look before you send it again.",
    icon="database",
)
BUSY = Page(title="Something else works on this just now", text="Nothing was changed. Try again in a moment.", icon="timer")
FORM_EXPIRED = Page(
    title="This form is out of date",
    text="Nothing was changed. Your log-in changed since the page was opened: go back, reload and send it again.",
)


def respond(
    request: HttpRequest, status: int, *, page: Page | None = None, reason: str = "", reference: str = ""
) -> HttpResponse:
    """Return the failure as JSON for the API, a strip for htmx, or a page; `reason` is a safe sentence of ours."""
    page = page or PAGES[status]
    if request.path.startswith("/api/"):
        return JsonResponse({"detail": reason or f"{page.title}. {page.text}"}, status=status)
    template = "_error_strip.html" if getattr(request, "htmx", False) else "error.html"
    context = {"page": page, "reason": reason, "reference": reference, "status": status}
    return HttpResponse(render_to_string(template, context, request), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400, or 413 when the body was over the limit."""
    return respond(request, 413 if isinstance(exception, RequestDataTooBig) else 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403 with the sentence of the PermissionDenied that a permission function raised."""
    return respond(request, 403, reason=str(exception))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404 without telling what exists."""
    return respond(request, 404)


def broken(request: HttpRequest) -> HttpResponse:
    """Answer 500 with a reference that finds the log line, or 503 while PostgreSQL is down or a row is kept locked.

    Django logs the traceback itself.
    """
    failure = sys.exc_info()[1]
    if failure and isinstance(failure.__cause__ or failure, psycopg.errors.LockNotAvailable):
        log.warning("config.lock.missed", method=request.method, path=request.path)
        return respond(request, 503, page=BUSY)
    if isinstance(failure, LOST):
        log.warning("config.database.lost", method=request.method, path=request.path)
        return respond(request, 503, page=DATABASE_DOWN if request.method in SAFE else DATABASE_LOST)
    reference = f"tr-{secrets.token_hex(3)}"
    log.error("config.page.broke", reference=reference, method=request.method, path=request.path)
    page = PAGES[500] if request.method in SAFE else BROKE_WHILE_CHANGING
    return respond(request, 500, page=page, reference=reference)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form whose CSRF token is missing or old."""
    log.warning("config.form.refused", path=request.path, reason=reason)
    return respond(request, 403, page=FORM_EXPIRED)


def locked_out(request: HttpRequest, credentials: dict[str, Any] | None = None, *args: Any, **kwargs: Any) -> HttpResponse:
    """Answer a log-in during the pause after too many tries."""
    minutes = round(settings.AXES_COOLOFF_TIME * 60)
    response = respond(request, 429, reason=f"Too many wrong tries for this name. Wait {minutes} minutes, then try again.")
    response["Retry-After"] = str(minutes * 60)
    return response


class Frame:
    """Middleware: gives a bare 405 its page, and keeps people's pages out of every cache."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        """Pass the request on; the same for WSGI and ASGI."""
        if iscoroutinefunction(self):
            return self.later(request)
        return self.finish(request, self.get_response(request))

    async def later(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on without blocking the event loop."""
        return self.finish(request, await self.get_response(request))

    def finish(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Return the response as it leaves."""
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED and not response.content:
            allowed = response["Allow"]
            response = respond(request, 405)
            response["Allow"] = allowed
        response.headers.setdefault("Cache-Control", "no-store")
        return response
