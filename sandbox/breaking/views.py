"""The page: a conversation, five buttons that break something, and above them what must be true, live."""

from typing import Any

import structlog
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core import signing
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from agent import conversations, views
from agent.models import Conversation, StaffMessage
from agent.permissions import check_user_can_talk, user_can_talk
from ledger import connections
from ledger.permissions import user_can_read_trail
from ledger.roles import needs
from sandbox.breaking import requests, runs
from sandbox.breaking import strip as strips
from sandbox.breaking.acts import ACTS, Act
from sandbox.breaking.demonstration import CannotStrike
from sandbox.breaking.permissions import check_user_can_break, only_here
from sandbox.breaking.requests import CannotAsk, Request
from sandbox.breaking.runs import Run

log = structlog.get_logger()

SALT = "sandbox.breaking"  # what the page's own address for the strip is signed for
LONGEST = 12 * 60 * 60  # seconds, as a session
NOBODY = "There is no customer with a card that pays and a paid month: start an instance with its demo data."


@require_safe
@needs(check_user_can_break)
@only_here
def newest(request: HttpRequest) -> HttpResponse:
    """Go to the newest conversation in which the prepared request was sent; without one, offer to send it."""
    asked = StaffMessage.objects.filter(text__startswith=requests.BEGINNING, text__contains=requests.MIDDLE)
    asked = asked.order_by("-sent_at").values("thread")[:1]
    row = Conversation.objects.filter(thread__in=asked).first()
    return redirect("sandbox:broken", row.pk) if row else _draw(request, None)


@require_safe
@needs(check_user_can_break)
@only_here
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the buttons beside one conversation."""
    return _draw(request, get_object_or_404(Conversation, pk=pk))


@login_not_required  # while PostgreSQL is down nobody's session can be read: the page's signed address vouches for its reader
@require_safe
@only_here
def strip(request: HttpRequest) -> HttpResponse:
    """Return the strip and what happened, for the page to take over."""
    found = strips.look()
    try:
        if found.database and not request.user.is_authenticated:
            return HttpResponse(
                status=204, headers={"HX-Redirect": f"{resolve_url(settings.LOGIN_URL)}?next={reverse('sandbox:break')}"}
            )
        if found.database:
            check_user_can_break(request.user)
        may = _may(request.user) if found.database else _vouched(request)
    except DatabaseError:  # it went down just now
        found.database, may = False, _vouched(request)
    context = {
        "strip": found,
        "live": True,
        "pass": request.GET.get("pass", ""),
        **_buttons(_number(request.GET.get("c")), may),
    }
    return render(request, "sandbox/_break_live.html", context)


@require_POST
@needs(check_user_can_talk)
@only_here
def ask(request: HttpRequest) -> HttpResponse:
    """Send the prepared request about the next free month."""
    try:
        wish = _request(request, _conversation(request))
    except CannotAsk as reason:
        return _refused(request, str(reason))
    run = Run(act="ask", request=wish, thread=str(wish.thread))
    run.send()
    log.info("sandbox.request.asked", conversation=wish.conversation, user=request.user.pk)
    return _shown(request, wish.conversation, before=_conversation(request))


@require_POST
@needs(check_user_can_break)
@only_here
def act(request: HttpRequest, name: str) -> HttpResponse:
    """Break something, and send the prepared request with it if this person may."""
    chosen = next((one for one in ACTS if one.name == name), None)
    if chosen is None:
        raise Http404
    row = _conversation(request)
    try:
        wish = _request(request, row) if user_can_talk(request.user) else None
        thread = str(wish.thread if wish else row.thread if row else "")
        runs.begin(Run(act=name, request=wish, thread=thread), carry_out=chosen.carry_out)
    except (CannotAsk, CannotStrike) as reason:
        return _refused(request, str(reason))
    number = wish.conversation if wish else row.pk if row else None
    log.warning("sandbox.part.broke", act=name, conversation=number, user=request.user.pk)
    return _shown(request, number, before=row)


# -- what the views share ----------------------------------------------------------------------------


def _draw(request: HttpRequest, row: Conversation | None) -> HttpResponse:
    may = _may(request.user)
    context = {
        "strip": strips.look(),
        "pass": signing.dumps(may, salt=SALT),
        **(views.frame(request) | views.talk(row, user=request.user) if row else {}),
        **_buttons(row.pk if row else None, may),
    }
    return render(request, "sandbox/break.html", context)


def _may(user: Any) -> dict[str, bool]:
    """Return what of the page depends on who looks."""
    return {"may_talk": user_can_talk(user), "may_see_evidence": user_can_read_trail(user)}


def _buttons(conversation: int | None, may: dict[str, bool]) -> dict[str, Any]:
    """Return what the column of buttons shows; nothing of it comes from the database."""
    ran = runs.latest()
    acts: list[tuple[Act, Run | None]] = [(one, ran.get(one.name)) for one in ACTS]
    return {"acts": acts, "busy": runs.busy(), "number": conversation, **may}


def _request(request: HttpRequest, row: Conversation | None) -> Request:
    """Return the next request, in this conversation or a new one. Raise CannotAsk."""
    with connections.writing() as conn:
        if row is None or requests.customer(conn, wanted=row.subject) is None:
            subject = requests.customer(conn)
            if subject is None:
                raise CannotAsk(NOBODY)
            row = conversations.create(subject=subject, user=request.user)
        author = int(request.user.pk)
        return requests.prepare(conn, conversation=row.pk, thread=row.thread, customer=row.subject, author=author)


def _conversation(request: HttpRequest) -> Conversation | None:
    number = _number(request.POST.get("conversation"))
    return get_object_or_404(Conversation, pk=number) if number else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 18 else None


def _shown(request: HttpRequest, number: int | None, *, before: Conversation | None) -> HttpResponse:
    """Show what happens now: in place, or on the page of the conversation that was begun."""
    address = reverse("sandbox:broken", args=[number]) if number else reverse("sandbox:break")
    if not request.htmx:
        return redirect(address)
    if before is None or before.pk != number:
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return render(request, "sandbox/_break_done.html", _buttons(number, _may(request.user)))


def _refused(request: HttpRequest, sentence: str) -> HttpResponse:
    """Say why nothing was broken."""
    if request.htmx:
        words = {"title": "Not now", "text": sentence, "icon": "hand"}
        return render(request, "_error_strip.html", {"page": words}, status=409)
    messages.error(request, sentence)
    return redirect("sandbox:break")


def _vouched(request: HttpRequest) -> dict[str, bool]:
    """Return what whoever got this address from the page may; raise Http404 when nobody did."""
    try:
        found: dict[str, bool] = signing.loads(request.GET.get("pass", ""), salt=SALT, max_age=LONGEST)
        return found
    except signing.BadSignature:
        raise Http404 from None
