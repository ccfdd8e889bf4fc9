"""The JSON API of conversations: the same verbs and rules as the pages, session log-in and CSRF included."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any
from uuid import uuid4

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as Invalid
from django.shortcuts import get_object_or_404
from django.utils import timezone
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response

from agent import conversations as reading
from agent import events, feeds, standing, stepping_in, waits
from agent import messages as sending
from agent.forms import clean_text
from agent.interventions import TOO_LATE, late
from agent.models import Conversation
from agent.permissions import (
    check_user_can_hand_back,
    check_user_can_read,
    check_user_can_resume,
    check_user_can_step_in,
    check_user_can_talk,
    check_user_can_undo,
    user_can_hand_back_for_others,
)
from escalations import facts, lifecycle
from escalations.models import Escalation
from ledger import connections, faults, people, wiring
from outbox import bell, requests, sends_after
from outbox.models import Message

View = Callable[..., Response]


class Strict(serializers.Serializer[Any]):
    """A body of known fields only, each of its own JSON type: a number is not a text, nor a text a number."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated fields; refuse what nobody asked for."""
        named = sorted(data) if isinstance(data, dict) else []
        if wrong := {name: [problem] for name in named if (problem := self._problem(name, data[name]))}:
            raise ValidationError(wrong)
        return super().to_internal_value(data)

    def _problem(self, name: str, value: Any) -> str:
        if name not in self.fields:
            return "This field is not known."
        if isinstance(self.fields[name], serializers.IntegerField):
            return "" if type(value) is int else "A whole number is needed."
        return "" if isinstance(value, str) else "A text is needed."


class NewConversation(Strict):
    """Whom a conversation is about."""

    subject = serializers.IntegerField(min_value=1, max_value=2**63 - 1)

    def validate_subject(self, subject: int) -> int:
        """Refuse a customer who does not exist."""
        if wiring.plugged("BACKSTOP_SUBJECTS").find(subject) is None:
            raise ValidationError("There is no such customer.")
        return subject


class NewMessage(Strict):
    """What a staff member says; the same id is the same message."""

    id = serializers.UUIDField(required=False)
    text = serializers.CharField(trim_whitespace=False, allow_blank=True)

    def validate_text(self, text: str) -> str:
        """Refuse what may not be sent."""
        try:
            return clean_text(text)
        except Invalid as error:
            raise ValidationError(error.messages) from None


class Withdrawal(Strict):
    """Which request is taken back, and why."""

    escalation = serializers.IntegerField(min_value=1, max_value=2**63 - 1)
    reason = serializers.CharField(required=False, trim_whitespace=False, allow_blank=True)

    def validate_reason(self, reason: str) -> str:
        """Refuse what may not be kept; a reason may be left out."""
        return NewMessage().validate_text(reason) if reason.strip() else ""


class Undoing(Strict):
    """Which effect is taken back: a message's id, as the feed's lines have it under `undos`."""

    message = serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class StepIn(Strict):
    """Whom one steps in for; without it, for the agent."""

    instead_of = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1)


class Newest(CursorPagination):
    """Newest conversations first."""

    ordering = "-id"


def endpoint(methods: Sequence[str]) -> Callable[[View], Any]:
    """Declare an API view: JSON 403 instead of the log-in page for whoever is not logged in."""
    return lambda view: login_not_required(api_view(list(methods))(view))


@endpoint(["GET", "POST"])
def conversations(request: Request) -> Response:
    """List conversations, newest first, or begin one."""
    if request.method == "POST":
        return _begin(request)
    check_user_can_read(request.user)
    pages = Newest()
    rows = pages.paginate_queryset(Conversation.objects.all(), request) or []
    names = people.subject_names(row.subject for row in rows)
    return pages.get_paginated_response([_summary(row, names) for row in rows])


def _begin(request: Request) -> Response:
    check_user_can_talk(request.user)
    body = NewConversation(data=request.data)
    body.is_valid(raise_exception=True)
    row = reading.create(subject=body.validated_data["subject"], user=request.user)
    return Response(_summary(row, people.subject_names([row.subject])), status=201)


@endpoint(["GET"])
def conversation(request: Request, pk: int) -> Response:
    """Return a conversation with its feed, the waiting messages, and where it stands."""
    check_user_can_read(request.user)
    row = get_object_or_404(Conversation, pk=pk)
    rows = reading.read(row, everything="all" in request.query_params)
    stands = standing.standing(rows, now=timezone.now())
    items = feeds.feed(rows, live=rows.runs, shown=feeds.untold(rows))
    return Response(
        _summary(row, {row.subject: rows.subject})
        | {
            "seq": rows.seq,
            "standing": asdict(stands),
            "feed": [asdict(item) for item in items if item.kind != "day"],
            "queue": [{"id": message.id, "text": message.text, "sent_at": message.sent_at} for message in rows.queued],
            "draft": rows.draft,
            "waits": asdict(waiting) if (waiting := waits.of(rows)) else None,
            "stepped_in": asdict(rows.person) if rows.person else None,
        }
    )


@endpoint(["POST"])
def messages(request: Request, pk: int) -> Response:
    """Queue a message: 201, or 200 when it was there already."""
    check_user_can_talk(request.user)
    row = get_object_or_404(Conversation, pk=pk)
    body = NewMessage(data=request.data)
    body.is_valid(raise_exception=True)
    message, text = body.validated_data.get("id") or uuid4(), body.validated_data["text"]
    return _act(
        row,
        lambda conn: sending.send(conn, thread=row.thread, message=message, author=request.user.pk, text=text),
        ring=True,
        answer=lambda new: Response({"id": message}, status=201 if new else 200),
    )


@endpoint(["POST"])
def stop(request: Request, pk: int) -> Response:
    """Ask the agent to stop before its next step."""
    check_user_can_talk(request.user)
    row = get_object_or_404(Conversation, pk=pk)
    return _act(row, lambda conn: sending.stop(conn, thread=row.thread, user=request.user.pk))


@endpoint(["POST"])
def resume(request: Request, pk: int) -> Response:
    """Wake the agent for a conversation that stands still."""
    check_user_can_resume(request.user)
    row = get_object_or_404(Conversation, pk=pk)
    name = str(request.user)
    return _act(row, lambda conn: sending.resume(conn, thread=row.thread, user=request.user.pk, name=name), ring=True)


@endpoint(["POST"])
def withdraw(request: Request, pk: int) -> Response:
    """Take a request back that waits for a reviewer; 409 with the winner's name when somebody decided first."""
    check_user_can_talk(request.user)
    row = get_object_or_404(Conversation, pk=pk)
    body = Withdrawal(data=request.data)
    body.is_valid(raise_exception=True)
    about = {"escalation": body.validated_data["escalation"], "text": body.validated_data.get("reason", "")}
    get_object_or_404(Escalation, pk=about["escalation"], thread=row.thread, interrupt_id__isnull=False)
    try:
        return _act(row, lambda conn: lifecycle.withdraw(conn, user=request.user.pk, **about), ring=True)
    except facts.Fact as fact:
        return Response({"detail": late(fact)}, status=409)


@endpoint(["POST"])
def undo(request: Request, pk: int) -> Response:
    """Take an effect back that was not sent yet, while there is time for it; 409 once that is over."""
    check_user_can_undo(request.user)
    row = get_object_or_404(Conversation, pk=pk)
    body = Undoing(data=request.data)
    body.is_valid(raise_exception=True)
    message = get_object_or_404(Message, pk=body.validated_data["message"], thread=row.thread)
    if not reading.can_undo(row, user=request.user):
        raise PermissionDenied
    try:
        answer = _act(row, lambda conn: sends_after.undo(conn, message=message.pk, user=request.user.pk))
    except sends_after.TooLate:
        return Response({"detail": TOO_LATE}, status=409)
    requests.announce()
    return answer


@endpoint(["POST"])
def step_in(request: Request, pk: int) -> Response:
    """Answer instead of the agent, or of whoever does; 409 with the name when somebody was first."""
    check_user_can_step_in(request.user)
    row = get_object_or_404(Conversation, pk=pk)
    body = StepIn(data=request.data)
    body.is_valid(raise_exception=True)
    about = {"thread": row.thread, "user": request.user.pk, "name": str(request.user)}
    return _act(row, lambda conn: stepping_in.step_in(conn, instead_of=body.validated_data.get("instead_of"), **about))


@endpoint(["POST"])
def say(request: Request, pk: int) -> Response:
    """Keep what a person who stepped in writes: 201, or 200 when it was there already."""
    check_user_can_step_in(request.user)
    row = get_object_or_404(Conversation, pk=pk)
    body = NewMessage(data=request.data)
    body.is_valid(raise_exception=True)
    message, text = body.validated_data.get("id") or uuid4(), body.validated_data["text"]
    return _act(
        row,
        lambda conn: stepping_in.say(conn, thread=row.thread, message=message, user=request.user.pk, text=text),
        answer=lambda new: Response({"id": message}, status=201 if new else 200),
    )


@endpoint(["POST"])
def hand_back(request: Request, pk: int) -> Response:
    """Let the agent go on."""
    check_user_can_hand_back(request.user)
    row = get_object_or_404(Conversation, pk=pk)
    about = {"thread": row.thread, "user": request.user.pk, "name": str(request.user)}
    anybodys = user_can_hand_back_for_others(request.user)
    return _act(row, lambda conn: stepping_in.hand_back(conn, anybodys=anybodys, **about), ring=True)


def _act(
    row: Conversation,
    verb: Callable[[Any], Any],
    *,
    ring: bool = False,
    answer: Callable[[Any], Response] = lambda done: Response(status=204),
) -> Response:
    try:
        with connections.writing() as conn:
            done = verb(conn)
    except sending.Unsendable as reason:
        return Response({"detail": str(reason)}, status=409)
    faults.reach("words.committed", thread=row.thread)
    events.publish(row.thread, "feed")
    if ring:
        bell.ring("agent.drive", str(row.thread))
    return answer(done)


def _summary(row: Conversation, names: dict[int, str]) -> dict[str, Any]:
    return {
        "id": row.pk,
        "subject": row.subject,
        "name": names.get(row.subject, ""),
        "created_by": row.created_by_id,
        "created_at": row.created_at,
    }
