"""The pages of the outbox, and the address that the provider sends its events to."""

from http import HTTPStatus
from typing import Any

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
from outbox import bell, bulk, figures, gateway, pages, permissions, requests, resumptions, sends_after, webhooks
from outbox.forms import MessageFilters, RequestForm, SeveralForm
from outbox.models import Destination, Message

log = structlog.get_logger()
LARGEST_EVENT = 256 * 1024  # bytes
ASKED = {
    "cancel": "Asked to withdraw it. The outbox worker does so within seconds, unless it is sent first.",
    "replay": "Asked to try it again. The outbox worker takes it up within seconds.",
    "look_up": "Asked to look it up. The outbox worker asks the provider within seconds.",
}
UNDONE = "Taken back. The outbox worker withdraws it within seconds; it is not sent."


@require_safe
@needs(permissions.check_user_can_browse_outbox)
def messages(request: HttpRequest) -> HttpResponse:
    """Every message, newest first, and how the outbox is."""
    return _list(request)


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


@require_POST
@needs(permissions.check_user_can_ask_of_message)
def look_up(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask the outbox worker to find out now what the provider has of a message."""
    return _ask(request, pk, kind="look_up")


@require_POST
@needs(permissions.check_user_can_ask_of_message)
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Take back, while there is time for it, what was not sent yet; no reason is asked for."""
    get_object_or_404(Message, pk=pk)
    try:
        with connections.writing() as conn:
            sends_after.undo(conn, message=pk, user=int(request.user.pk))
    except sends_after.TooLate:
        return _page(request, pk, late=True, status=HTTPStatus.CONFLICT)
    log.info("outbox.request.recorded", message=pk, kind="cancel", user=request.user.pk)
    requests.announce()
    notes.info(request, UNDONE, extra_tags="info")
    return redirect("outbox:message", pk)


@require_POST
@needs(permissions.check_user_can_ask_of_message)
def resume(request: HttpRequest, name: str) -> HttpResponse:
    """Ask the outbox worker to try a destination that is parked."""
    get_object_or_404(Destination, pk=name)
    form = RequestForm(request.POST)
    if not form.is_valid():
        return _list(request, refused=(name, form), status=HTTPStatus.UNPROCESSABLE_ENTITY)
    try:
        with connections.writing() as conn:
            resumptions.ask(conn, destination=name, reason=form.cleaned_data["reason"], user=int(request.user.pk))
    except resumptions.NotParked:
        return _list(request, conflict=name, status=HTTPStatus.CONFLICT)
    log.info("outbox.request.recorded", destination=name, kind="resume", user=request.user.pk)
    requests.announce()
    notes.info(request, f"Asked to try {name} now. The outbox worker does so within seconds.", extra_tags="info")
    return redirect("outbox:messages")


@needs(permissions.check_user_can_ask_of_message)
def several(request: HttpRequest) -> HttpResponse:
    """Show what asking the same of many messages would do; a POST with a reason asks."""
    if request.method == "POST":
        return _ask_several(request)
    form = SeveralForm(request.GET)
    filters = MessageFilters(request.GET)
    if not form.is_valid():
        return _several(request, form, [], status=HTTPStatus.UNPROCESSABLE_ENTITY)
    wanted = filters.rows() if form.cleaned_data["every"] else Message.objects.filter(id__in=form.cleaned_data["message"])
    return _several(request, form, wanted)


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
    except (gateway.BadWebhook, webhooks.Malformed, webhooks.WrongMode) as error:
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
        return _page(request, pk, form=form, asking=kind, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    try:
        with connections.writing() as conn:
            requests.ask(conn, message=pk, kind=kind, reason=form.cleaned_data["reason"], user=int(request.user.pk))
    except requests.NotPossible:
        return _page(request, pk, form=form, conflict=True, status=HTTPStatus.CONFLICT)
    log.info("outbox.request.recorded", message=pk, kind=kind, user=request.user.pk)
    requests.announce()
    notes.info(request, ASKED[kind], extra_tags="info")
    return redirect("outbox:message", pk)


def _ask_several(request: HttpRequest) -> HttpResponse:
    form, reason = SeveralForm(request.POST), RequestForm(request.POST)
    if not form.is_valid():
        return _several(request, form, [], status=HTTPStatus.UNPROCESSABLE_ENTITY)
    chosen, kind = form.cleaned_data["message"], form.cleaned_data["kind"]
    if not reason.is_valid():
        wanted = Message.objects.filter(id__in=chosen)
        return _several(request, form, wanted, reason=reason, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    given = {"kind": kind, "reason": reason.cleaned_data["reason"], "user": int(request.user.pk)}
    with connections.writing() as conn:
        asked = bulk.ask(conn, messages=chosen, **given)
    log.info("outbox.request.recorded", messages=asked, kind=kind, user=request.user.pk)
    requests.announce()
    notes.info(request, bulk.said(kind, asked=len(asked), left=len(chosen) - len(asked)), extra_tags="info")
    return redirect("outbox:messages")


def _several(
    request: HttpRequest, form: SeveralForm, wanted: Any, *, reason: RequestForm | None = None, status: int = HTTPStatus.OK
) -> HttpResponse:
    context: dict[str, Any] = {"form": form, "reason": reason, "most": bulk.MOST}
    if form.is_valid():
        kind = form.cleaned_data["kind"]
        rows = list(wanted.order_by("-id")[: bulk.MOST + 1]) if wanted else []
        with connections.writing() as conn:
            lines = bulk.dry_run(conn, messages=rows[: bulk.MOST], kind=kind)
        context |= {"kind": kind, "ask": pages.ASKS[kind], "lines": lines, "more": len(rows) > bulk.MOST}
        context |= {"possible": [line for line in lines if line.possible]}
    return render(request, "outbox/several.html", context, status=status)


def _list(
    request: HttpRequest, *, conflict: str = "", refused: tuple[str, RequestForm] | None = None, status: int = HTTPStatus.OK
) -> HttpResponse:
    form = MessageFilters(request.GET)
    page = keysets.asked_for(form.rows(), order=pages.NEWEST, size=pages.SIZE, query=request.GET)
    now = timezone.now()
    context = {
        "form": form,
        "page": page,
        "rows": pages.lines(page.rows),
        "kept": keysets.kept(request.GET),
        "now": now,
        "figures": figures.figures(now=now),
        "ways": figures.ways(now=now),
        "asks": pages.ASKS,
        "most": bulk.MOST,
        "conflict": conflict,
        "refused": refused,
    }
    return render(request, "outbox/messages.html", context, status=status)


def _page(
    request: HttpRequest,
    pk: int,
    *,
    form: RequestForm | None = None,
    asking: str = "",
    conflict: bool = False,
    late: bool = False,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    row = get_object_or_404(Message, pk=pk)
    may_ask = permissions.user_can_ask_of_message(request.user)
    context = pages.case(row) | {"form": form, "asking": asking, "conflict": conflict, "late": late, "may_ask": may_ask}
    return render(request, "outbox/message.html", context, status=status)
