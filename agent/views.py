"""The chat's pages. Each loads with permission, makes one call, and redirects or draws the chat again."""

import uuid
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from agent import conversations as reading
from agent import events, feeds, histories, lists, messages, rulebook, standing, waits
from agent.forms import EditForm, MessageForm, QueuedForm, SubjectForm
from agent.models import Conversation
from agent.permissions import (
    check_user_can_read,
    check_user_can_resume,
    check_user_can_talk,
    user_can_hand_back_for_others,
    user_can_resume,
    user_can_see_evidence,
    user_can_step_in,
    user_can_talk,
    user_can_undo,
)
from agent.stepping_in import Elsewhere
from ledger import connections, faults, wiring
from ledger.roles import needs
from outbox import bell


@require_safe
@needs(check_user_can_read)
def conversations(request: HttpRequest) -> HttpResponse:
    """Show the list, and how to begin."""
    template = "agent/_list.html" if request.htmx else "agent/page.html"
    return render(request, template, frame(request) | _list(request))


@needs(check_user_can_talk)
def new(request: HttpRequest) -> HttpResponse:
    """Pick a customer; a conversation acts on one only."""
    subjects = wiring.plugged("BACKSTOP_SUBJECTS")
    text = request.GET.get("customer", "")
    context = {"text": text, "choices": subjects.search(text, limit=20), "error": ""}
    if request.method != "POST":
        return render(request, "agent/new.html", frame(request) | _list(request) | context)
    form = SubjectForm(request.POST)
    if form.is_valid() and subjects.find(form.cleaned_data["subject"]):
        made = reading.create(subject=form.cleaned_data["subject"], user=request.user)
        return redirect("agent:conversation", pk=made.pk)
    context["error"] = "There is no such customer. Search for one by name, e-mail or number."
    return render(request, "agent/new.html", frame(request) | _list(request) | context, status=422)


@require_safe
@needs(check_user_can_read)
def conversation(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one conversation."""
    return _draw(request, get_object_or_404(Conversation, pk=pk))


@require_safe
@needs(check_user_can_read)
def feed(request: HttpRequest, pk: int) -> HttpResponse:
    """Return what may have changed since the page was drawn, for it to take over."""
    return _draw_live(request, get_object_or_404(Conversation, pk=pk))


@require_POST
@needs(check_user_can_talk)
def send(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue a message and wake the agent."""
    row, form = get_object_or_404(Conversation, pk=pk), MessageForm(request.POST)
    if not form.is_valid():
        return refused(request, row, error=first_error(form), status=422)
    return act(
        request,
        row,
        lambda conn: messages.send(
            conn, thread=row.thread, message=form.cleaned_data["message"], author=user_id(request), text=form.cleaned_data["text"]
        ),
    )


@require_POST
@needs(check_user_can_talk)
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Change a waiting message."""
    row, form = get_object_or_404(Conversation, pk=pk), EditForm(request.POST)
    if not form.is_valid():
        return refused(request, row, error=first_error(form), status=422)
    return act(
        request,
        row,
        lambda conn: messages.edit(
            conn, thread=row.thread, message=form.cleaned_data["message"], author=user_id(request), text=form.cleaned_data["text"]
        ),
        ring=False,
    )


@require_POST
@needs(check_user_can_talk)
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a waiting message back."""
    row, form = get_object_or_404(Conversation, pk=pk), QueuedForm(request.POST)
    if not form.is_valid():
        return refused(request, row, error="That message does not exist.", status=422)
    return act(
        request, row, lambda conn: messages.cancel(conn, thread=row.thread, message=form.cleaned_data["message"]), ring=False
    )


@require_POST
@needs(check_user_can_talk)
def stop(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask the agent to stop before its next step."""
    row = get_object_or_404(Conversation, pk=pk)
    return act(request, row, lambda conn: messages.stop(conn, thread=row.thread, user=user_id(request)), ring=False)


@require_POST
@needs(check_user_can_resume)
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Wake the agent for a conversation that stands still."""
    row = get_object_or_404(Conversation, pk=pk)
    name = str(request.user)
    return act(request, row, lambda conn: messages.resume(conn, thread=row.thread, user=user_id(request), name=name))


# -- what the views share ----------------------------------------------------------------------------


def act(request: HttpRequest, row: Conversation, verb: Callable[[Any], Any], *, ring: bool = True) -> HttpResponse:
    """Run one verb in one transaction, then tell browsers and worker, and draw the chat or redirect to it."""
    try:
        with connections.writing() as conn:
            verb(conn)
    except Elsewhere as reason:
        return refused(request, row, conflict=str(reason), status=409)
    except messages.Unsendable as reason:
        return refused(request, row, error=str(reason), status=422)
    faults.reach("words.committed", thread=row.thread)
    events.publish(row.thread, "feed")
    if ring:
        bell.ring("agent.drive", str(row.thread))
    return _draw_live(request, row) if request.htmx else redirect("agent:conversation", pk=row.pk)


def refused(request: HttpRequest, row: Conversation, *, status: int, **said: str) -> HttpResponse:
    """Draw the conversation with why nothing was done: `error` is about the message, `conflict` about anything else.

    What was typed stays.
    """
    typed = "" if "escalation" in request.POST else request.POST.get("text", "")[:20_000].replace("\x00", "")
    draw = _draw_live if request.htmx else _draw
    return draw(request, row, status=status, typed=typed, **said)


def _draw(request: HttpRequest, row: Conversation, *, status: int = 200, **more: str) -> HttpResponse:
    """Draw the whole page of a conversation."""
    context = frame(request) | _list(request) | talk(row, user=request.user, everything="all" in request.GET) | more
    return render(request, "agent/page.html", context, status=status)


def _draw_live(request: HttpRequest, row: Conversation, *, status: int = 200, **more: str) -> HttpResponse:
    """Draw the parts of a conversation that change while it is open."""
    parts = talk(row, user=request.user, everything="all" in request.GET)
    context = frame(request) | parts | {"entry": lists.entry(row)} | more
    return render(request, "agent/_live.html", context, status=status)


def talk(row: Conversation, *, user: Any, everything: bool = False) -> dict[str, Any]:
    """Return what the middle and the right pane show of a conversation."""
    rows = reading.read(row, everything=everything)
    stands = standing.standing(rows, now=timezone.now())
    shown = feeds.untold(rows) + (rows.queued[:1] if stands.starting else [])
    return {
        "rows": rows,
        "conversation": row,
        "current": row.pk,
        "began_by": rows.name(row.created_by_id),
        "standing": stands,
        "person": rows.person,
        "answers": rows.person is not None and rows.person.user == user.pk,
        "waits": waits.of(rows),
        "can_withdraw": user_can_talk(user) and reading.can_withdraw(rows, user=user),
        "can_undo": bool(rows.undos) and user_can_undo(user) and reading.can_undo(row, user=user),
        "queue": rows.queued[1:] if stands.starting else rows.queued,
        "items": feeds.feed(rows, live=rows.runs, shown=shown),
        "new_id": uuid.uuid4(),
        "questions": [(question, histories.word(question)) for question in reading.questions(row.subject)],
        **wiring.plugged("BACKSTOP_SUBJECTS").panel(row.subject),
    }


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return the strips, and what this person may do, for every page with a conversation in it."""
    return {
        "can_talk": user_can_talk(request.user),
        "can_resume": user_can_resume(request.user),
        "can_step_in": user_can_step_in(request.user),
        "can_hand_back": user_can_hand_back_for_others(request.user),
        "can_see_evidence": user_can_see_evidence(request.user),
        "stand_in": not settings.BACKSTOP_MODEL,
        "paused": rulebook.pause(),
    }


def _list(request: HttpRequest) -> dict[str, Any]:
    """Return the list of conversations that the query string asks for."""
    current = request.GET.get("current", "")
    return {
        "listing": lists.listing(
            user=request.user,
            only=request.GET.get("only", ""),
            text=request.GET.get("q", "")[:200],
            default="mine" if user_can_talk(request.user) else "all",
        ),
        "current": int(current) if current.isascii() and current.isdigit() and len(current) <= 18 else None,
    }


def first_error(form: Any) -> str:
    """Return the first thing that is wrong with a form, in a sentence."""
    for errors in form.errors.as_data().values():
        for error in errors:
            found: ValidationError = error
            return str(found.messages[0])
    return "The message could not be read."


def user_id(request: HttpRequest) -> int:
    """Return who asks."""
    return int(request.user.pk)
