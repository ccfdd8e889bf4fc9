"""Who works on a case, and when it is looked at again."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from escalations import desk, facts, permissions, reviewers, snoozes
from escalations.views import cases
from ledger.roles import needs


@require_POST
@needs(permissions.check_user_can_claim)
def claim(request: HttpRequest, pk: int) -> HttpResponse:
    """Hold it for 15 minutes; with `from_another`, from whoever holds it."""
    about = {"user": request.user.id, "from_another": "from_another" in request.POST}
    return _acted(request, pk, wanted="claim", act=lambda: desk.claim(escalation=pk, **about))


@require_POST
@needs(permissions.check_user_can_claim)
def release(request: HttpRequest, pk: int) -> HttpResponse:
    """Give it back to the others."""
    return _acted(request, pk, wanted="release", act=lambda: desk.release(escalation=pk, user=request.user.id))


@require_POST
@needs(permissions.check_user_can_claim)
def wake(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a snoozed one again now."""
    return _acted(request, pk, wanted="waking", act=lambda: desk.wake_up(escalation=pk, user=request.user.id))


@require_POST
@needs(permissions.check_user_can_claim)
def snooze(request: HttpRequest, pk: int) -> HttpResponse:
    """Put it off until a time."""
    case, form = cases.case_of(request, pk), snoozes.SnoozeForm(request.POST, now=timezone.now())
    if not form.is_valid():
        return cases.page(request, case, opened="snooze", problems=_said(form), more={"snooze_form": form})
    until = form.cleaned_data["until"]
    try:
        desk.snooze(escalation=pk, user=request.user.id, until=until)
    except facts.NotThen as fact:
        form.add_error("until", str(fact))
        return cases.page(request, case, opened="snooze", problems=_said(form), more={"snooze_form": form})
    except facts.Fact as fact:
        return cases.page(request, cases.case_of(request, pk), fact=fact, wanted="snooze")
    messages.info(request, f"E-{pk} is snoozed until {timezone.localtime(until):%d %b %H:%M}.", extra_tags="queued")
    return redirect(cases.address(request, pk))


@require_POST
@needs(permissions.check_user_can_claim)
def reassign(request: HttpRequest, pk: int) -> HttpResponse:
    """Give it to another reviewer."""
    case, form = cases.case_of(request, pk), reviewers.ReassignForm(request.POST)
    if not form.is_valid():
        return cases.page(request, case, opened="reassign", problems=_said(form), more={"reassign_form": form})
    try:
        desk.reassign(escalation=pk, user=request.user.id, to=form.cleaned_data["to"])
    except facts.NoSuchReviewer as fact:
        form.add_error("to", str(fact))
        return cases.page(request, case, opened="reassign", problems=_said(form), more={"reassign_form": form})
    except facts.Fact as fact:
        return cases.page(request, cases.case_of(request, pk), fact=fact, wanted="reassignment")
    return redirect(cases.address(request, pk))


def _acted(request: HttpRequest, pk: int, *, wanted: str, act: Callable[[], Any]) -> HttpResponse:
    cases.case_of(request, pk)
    try:
        act()
    except facts.Fact as fact:
        return cases.page(request, cases.case_of(request, pk), fact=fact, wanted=wanted)
    return redirect(cases.address(request, pk))


def _said(form: Any) -> list[str]:
    return [error for errors in form.errors.values() for error in errors]
