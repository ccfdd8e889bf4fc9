"""The pages of the outbox, and the address that the provider sends its events to."""

from http import HTTPStatus

import structlog
from django.contrib import messages as notes
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from ledger import connections, faults, keysets
from ledger.roles import needs
from outbox import bell, gateway, handlers, pages, permissions, requests, webhooks
from outbox.forms import MessageFilters, RequestForm
from outbox.models import Message

log = structlog.get_logger()
LARGEST_EVENT = 256 * 1024  # bytes
ASKED = {
    "cancel": "Asked to withdraw it. The outbox worker does so within seconds, unless it is sent first.",
    "replay": "Asked to try it again. The outbox worker takes it up within seconds.",
}


@require_safe
@needs(permissions.check_user_can_browse_outbox)
def messages(request: HttpRequest) -> HttpResponse:
    """Every message, newest first, and how the outbox is."""
    form = MessageFilters(request.GET, topics=[handler.topic for handler in handlers.every()])
    page = keysets.asked_for(form.rows(), order=pages.NEWEST, size=pages.SIZE, query=request.GET)
    now = timezone.now()
    context = {
        "form": form,
        "page": page,
        "rows": pages.lines(page.rows),
        "kept": keysets.kept(request.GET),
        "now": now,
        "summary": pages.summary(now=now),
    }
    return render(request, "outbox/messages.html", context)


@require_safe
@needs(permissions.check_user_can_browse_outbox)
def message(request: HttpRequest, pk: int) -> HttpResponse:
    """One message: what it is, what happened to it, what was frozen, what it changed."""
    return _page(request, pk)


@require_POST
@needs(permissions.check_user_can_ask_of_message)
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask the outbox worker to withdraw a message that was not sent."""
    return _ask(request, pk, kind="cancel")


@require_POST
@needs(permissions.check_user_can_ask_of_message)
def replay(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask the outbox worker to take a dead message up again."""
    return _ask(request, pk, kind="replay")


@csrf_exempt
@login_not_required
@require_POST
def webhook(request: HttpRequest) -> HttpResponse:
    """Keep a verified event and answer at once; processing comes later. Anything else is a 400."""
    body = request.read(LARGEST_EVENT + 1)
    if len(body) > LARGEST_EVENT:
        return HttpResponse(
            "The body is larger than any event.", status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE, content_type="text/plain"
        )
    try:
        event = gateway.verified(body, request.headers.get("Stripe-Signature", ""), now=timezone.now().timestamp())
        faults.reach("webhook.verified")
        with connections.writing() as conn:
            new = webhooks.store(conn, event=event)
    except (gateway.BadWebhook, webhooks.Malformed) as error:
        log.warning("outbox.webhook.refused", reason=str(error))
        return HttpResponse(str(error), status=HTTPStatus.BAD_REQUEST, content_type="text/plain")
    log.info("outbox.webhook.received", event_id=event["id"], type=event["type"], new=new)
    faults.reach("webhook.stored")
    bell.ring("outbox.process_webhooks")
    return HttpResponse("", content_type="text/plain")


def _ask(request: HttpRequest, pk: int, *, kind: str) -> HttpResponse:
    """Record what a person wants done with a message; the worker that owns the outbox does it."""
    get_object_or_404(Message, pk=pk)
    form = RequestForm(request.POST)
    if not form.is_valid():
        return _page(request, pk, form=form, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    try:
        with connections.writing() as conn:
            requests.ask(conn, message=pk, kind=kind, reason=form.cleaned_data["reason"], user=int(request.user.pk))
    except requests.NotPossible:
        return _page(request, pk, form=form, conflict=True, status=HTTPStatus.CONFLICT)
    log.info("outbox.request.recorded", message=pk, kind=kind, user=request.user.pk)
    bell.ring("outbox.deliver")
    notes.info(request, ASKED[kind], extra_tags="info")
    return redirect("outbox:message", pk)


def _page(
    request: HttpRequest, pk: int, *, form: RequestForm | None = None, conflict: bool = False, status: int = HTTPStatus.OK
) -> HttpResponse:
    row = get_object_or_404(Message, pk=pk)
    may_ask = permissions.user_can_ask_of_message(request.user)
    context = pages.case(row) | {"form": form, "conflict": conflict, "may_ask": may_ask}
    return render(request, "outbox/message.html", context, status=status)
