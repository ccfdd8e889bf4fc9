"""The page of the reconcile desk, and what reviewers do on it."""

from http import HTTPStatus
from typing import Any

import structlog
from django import forms as django_forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from escalations import facts, permissions, policies
from escalations.models import Escalation
from escalations.reconciling import deciding, listing, scans
from escalations.reconciling.cases import Case
from escalations.reconciling.deciding import Chosen
from ledger import connections, marks
from ledger.roles import needs
from outbox import bell, requests

log = structlog.get_logger()
LOOKED_UP = "Looked up again at the reconcile desk."


class ExitForm(django_forms.Form):
    """A way to settle it, and why."""

    kind = django_forms.ChoiceField(
        choices=[(kind, kind) for kind in policies.EXITS], error_messages={"required": "Choose how to settle it."}
    )
    text = django_forms.CharField(max_length=2000, error_messages={"required": "Give a reason: it is kept with the decision."})


@require_safe
@needs(permissions.check_user_can_read)
def reconcile(request: HttpRequest) -> HttpResponse:
    """The disagreements, with the first of them."""
    return page(request, listing.waiting().first())


@require_safe
@needs(permissions.check_user_can_read)
def disagreement(request: HttpRequest, pk: int) -> HttpResponse:
    """The disagreements, with one of them, settled or not."""
    return page(request, _row(pk))


@require_POST
@needs(permissions.check_user_can_scan)
def scan(request: HttpRequest) -> HttpResponse:
    """Ask the outbox worker for a scan."""
    with connections.writing() as conn:
        scans.ask(conn, user=int(request.user.pk))
    bell.ring("outbox.reconcile")
    messages.info(request, "A scan was asked for. This page shows it when it is done.", extra_tags="info")
    return redirect("escalations:reconcile")


@require_POST
@needs(permissions.check_user_can_decide)
def look_up(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask the outbox worker to look the message up once more."""
    row = _row(pk)
    message = row.payload.get("message_id")
    try:
        with connections.writing() as conn:
            if message is None:
                raise requests.NotPossible("look_up")
            requests.ask(conn, message=message, kind="look_up", reason=LOOKED_UP, user=int(request.user.pk))
    except requests.NotPossible:
        return page(request, row, problems=["It cannot be looked up now, or something else was asked of it."], conflict=True)
    requests.announce()
    return redirect("escalations:disagreement", pk)


@require_POST
@needs(permissions.check_user_can_decide)
def choose(request: HttpRequest, pk: int) -> HttpResponse:
    """Settle it in one way; whoever comes second is told who was first."""
    row, form = _row(pk), ExitForm(request.POST)
    if not form.is_valid():
        return page(request, row, form=form, problems=[error for errors in form.errors.values() for error in errors])
    kind, user = form.cleaned_data["kind"], int(request.user.pk)
    try:
        with connections.writing() as conn:
            chosen = deciding.choose(conn, escalation=pk, kind=kind, text=form.cleaned_data["text"], user=user)
    except facts.AlreadyDecided as fact:
        return page(
            request, _row(pk), problems=[f"{fact.name} already {fact.deed('this')}. Nothing else was done."], conflict=True
        )
    except facts.Fact as fact:
        return page(request, _row(pk), form=form, problems=[str(fact)], conflict=True)
    return _onwards(request, row, chosen=chosen, kind=kind)


def _onwards(request: HttpRequest, row: Escalation, *, chosen: Chosen, kind: str) -> HttpResponse:
    """Ring for whoever does it, and show what becomes of it."""
    if chosen.decision is None:
        words = f"E-{row.id}: signed, {chosen.signed} of {chosen.needs}. Nothing is done before another reviewer signs."
        messages.info(request, words, extra_tags="held")
        return redirect("escalations:disagreement", row.id)
    log.info("escalations.disagreement.decided", escalation=row.id, kind=kind, user=request.user.pk, decision=chosen.decision.id)
    if kind == "replay_thread":
        bell.ring("agent.drive", str(row.thread))
    else:
        requests.announce()
    messages.info(request, f"E-{row.id}: {marks.DECISIONS[kind].word.lower()}.", extra_tags="applied")
    return redirect("escalations:disagreement", row.id)


def _row(pk: int) -> Escalation:
    found: Escalation = get_object_or_404(Escalation.objects.select_related("decision"), pk=pk, kind__in=policies.RECONCILED)
    return found


def page(
    request: HttpRequest, row: Escalation | None, *, form: ExitForm | None = None, problems: Any = (), conflict: bool = False
) -> HttpResponse:
    """Return the page as it is now: 409 after a lost race, 422 for a bad form with what was typed."""
    now, rows, scanned = timezone.now(), list(listing.waiting()[: listing.MOST]), listing.scanned()
    ids = [one.id for one in rows]
    place = ids.index(row.id) if row is not None and row.id in ids else None
    context = {
        "lines": listing.lines(rows, now=now),
        "holds": listing.hold(rows, last=scanned.last),
        "scan": scanned,
        "case": Case(row, user=request.user, now=now) if row is not None else None,
        "place": None if place is None else place + 1,
        "before": ids[place - 1] if place else None,
        "after": ids[place + 1] if place is not None and place + 1 < len(ids) else None,
        "next": next((one for one in ids if row is None or one != row.id), None),
        "form": form,
        "problems": problems,
        "may_scan": permissions.user_can_scan(request.user),
    }
    status = HTTPStatus.CONFLICT if conflict else HTTPStatus.UNPROCESSABLE_ENTITY if problems else HTTPStatus.OK
    return render(request, "escalations/reconcile.html", context, status=status)
