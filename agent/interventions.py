"""What people do to a conversation besides writing to the agent: withdraw, undo, step in, say, hand back."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST

from agent import conversations, histories, stepping_in, views
from agent.forms import MessageForm, StepForm, UndoForm, WithdrawForm
from agent.models import Conversation
from agent.permissions import (
    check_user_can_hand_back,
    check_user_can_step_in,
    check_user_can_talk,
    check_user_can_undo,
    user_can_hand_back_for_others,
)
from escalations import facts, lifecycle
from escalations.models import Escalation
from ledger.roles import needs
from ledger.spans import moment
from outbox import requests, sends_after
from outbox.models import Message

TOO_LATE = "It is too late to undo this: the time for it is over. Nothing was changed."


@require_POST
@needs(check_user_can_talk)
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a request back that waits for a reviewer."""
    row, form = get_object_or_404(Conversation, pk=pk), WithdrawForm(request.POST)
    if not form.is_valid():
        return views.refused(request, row, conflict=views.first_error(form), status=422)
    get_object_or_404(Escalation, pk=form.cleaned_data["escalation"], thread=row.thread, interrupt_id__isnull=False)
    about = {"escalation": form.cleaned_data["escalation"], "text": form.cleaned_data["text"]}
    try:
        return views.act(request, row, lambda conn: lifecycle.withdraw(conn, user=views.user_id(request), **about))
    except facts.Fact as fact:
        return views.refused(request, row, conflict=late(fact), status=409)


@require_POST
@needs(check_user_can_undo)
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    """Take an effect back that was not sent yet, while there is time for it."""
    row, form = get_object_or_404(Conversation, pk=pk), UndoForm(request.POST)
    if not form.is_valid():
        return views.refused(request, row, conflict="That effect does not exist.", status=422)
    message = get_object_or_404(Message, pk=form.cleaned_data["message"], thread=row.thread)
    if not conversations.can_undo(row, user=request.user):
        raise PermissionDenied
    user = views.user_id(request)
    try:
        answer = views.act(request, row, lambda conn: sends_after.undo(conn, message=message.pk, user=user), ring=False)
    except sends_after.TooLate:
        return views.refused(request, row, conflict=TOO_LATE, status=409)
    requests.announce()
    return answer


@require_POST
@needs(check_user_can_step_in)
def step_in(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer instead of the agent, or of whoever does."""
    row, form = get_object_or_404(Conversation, pk=pk), StepForm(request.POST)
    if not form.is_valid():
        return views.refused(request, row, conflict="That person does not exist.", status=422)
    about = {"thread": row.thread, "user": views.user_id(request), "name": str(request.user)}
    instead_of = form.cleaned_data["instead_of"]
    return views.act(request, row, lambda conn: stepping_in.step_in(conn, instead_of=instead_of, **about), ring=False)


@require_POST
@needs(check_user_can_step_in)
def say(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep what a person who stepped in writes."""
    row, form = get_object_or_404(Conversation, pk=pk), MessageForm(request.POST)
    if not form.is_valid():
        return views.refused(request, row, error=views.first_error(form), status=422)
    given = {"message": form.cleaned_data["message"], "text": form.cleaned_data["text"], "user": views.user_id(request)}
    return views.act(request, row, lambda conn: stepping_in.say(conn, thread=row.thread, **given), ring=False)


@require_POST
@needs(check_user_can_hand_back)
def hand_back(request: HttpRequest, pk: int) -> HttpResponse:
    """Let the agent go on."""
    row = get_object_or_404(Conversation, pk=pk)
    about = {"thread": row.thread, "user": views.user_id(request), "name": str(request.user)}
    anybodys = user_can_hand_back_for_others(request.user)
    return views.act(request, row, lambda conn: stepping_in.hand_back(conn, anybodys=anybodys, **about))


def late(fact: facts.Fact) -> str:
    """Return why a request was not withdrawn: usually that somebody decided first."""
    if isinstance(fact, facts.AlreadyDecided):
        at = f" at {moment(fact.at)}" if fact.at else ""
        name = "The system" if fact.kind in histories.BY_ITSELF else fact.name
        return f"{name} {fact.deed()}{at}. Nothing was withdrawn."
    return f"{fact} Nothing was withdrawn."
