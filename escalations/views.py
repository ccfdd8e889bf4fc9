"""The review desk: the inbox, one escalation, and what a reviewer does to it."""

from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from escalations import decided, desk, facts, inbox, permissions, questions
from escalations.cases import Case
from escalations.forms import REASONS, DecisionForm
from escalations.models import Escalation
from ledger import keysets, marks
from ledger.roles import needs


@require_safe
@needs(permissions.check_user_can_read)
def inbox_page(request: HttpRequest) -> HttpResponse:
    """What waits for a person, the most urgent first; and what was decided, the newest first."""
    now = timezone.now()
    form = inbox.InboxFilters(request.GET)
    rows = form.rows(user=request.user.id, now=now)
    view = form.shown
    order = inbox.URGENT if view in ("open", "mine", "unclaimed") else inbox.NEWEST
    page = keysets.asked_for(rows, order=order, size=inbox.SIZE, query=request.GET)
    counts = inbox.tabs(user=request.user.id, now=now)
    context = {
        "form": form,
        "view": view,
        "tabs": [(name, word, counts.get(name)) for name, word in inbox.NAMES.items()],
        "page": page,
        "groups": _grouped(inbox.lines(page.rows, user=request.user.id, now=now), view=view),
        "kept": keysets.kept(request.GET),
        "may_decide": permissions.user_can_decide(request.user),
        "unclaimed": counts["unclaimed"],
        "now": now,
    }
    return render(request, "escalations/inbox.html", context)


@require_safe
@needs(permissions.check_user_can_read)
def escalation(request: HttpRequest, pk: int) -> HttpResponse:
    """One escalation, to look at and to decide."""
    return _case_page(request, pk)


@require_safe
@needs(permissions.check_user_can_read)
def result(request: HttpRequest, pk: int) -> HttpResponse:
    """The part of the page that says what came of the decision; it asks again while that may change."""
    case = _case(request, pk)
    response = render(request, "escalations/_result.html", {"case": case})
    if not case.moving:  # the last answer: the rest of the page tells another story now
        response["HX-Refresh"] = "true"
    return response


@require_POST
@needs(permissions.check_user_can_claim)
def claim(request: HttpRequest, pk: int) -> HttpResponse:
    """Hold it for 15 minutes; with `take_over` from another reviewer."""
    get_object_or_404(Escalation, pk=pk)
    try:
        desk.claim(escalation=pk, user=request.user.id, take_over="take_over" in request.POST)
    except facts.Fact as fact:
        return _case_page(request, pk, fact=fact)
    return redirect("escalations:escalation", pk)


@require_POST
@needs(permissions.check_user_can_claim)
def claim_next(request: HttpRequest) -> HttpResponse:
    """Hold the most urgent one that nobody holds, and open it."""
    found = desk.claim_next(user=request.user.id)
    if found is None:
        messages.info(request, "Nothing is unclaimed.", extra_tags="info")
        return redirect("escalations:inbox")
    return redirect("escalations:escalation", found)


@require_POST
@needs(permissions.check_user_can_claim)
def release(request: HttpRequest, pk: int) -> HttpResponse:
    """Give it back to the others."""
    get_object_or_404(Escalation, pk=pk)
    desk.release(escalation=pk, user=request.user.id)
    return redirect("escalations:escalation", pk)


@require_POST
@needs(permissions.check_user_can_decide)
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the one decision; whoever comes second is told who was first."""
    get_object_or_404(Escalation, pk=pk)
    form = DecisionForm(request.POST)
    if not form.is_valid():
        return _case_page(request, pk, form=form)
    given = form.cleaned_data
    try:
        desk.decide(escalation=pk, kind=given["kind"], text=given["words"], user=request.user.id, revision=given["revision"] or 0)
    except facts.Fact as fact:
        return _case_page(request, pk, form=form, fact=fact)
    return redirect("escalations:escalation", pk)


@require_POST
@needs(permissions.check_user_can_decide)
def run_again(request: HttpRequest, pk: int) -> HttpResponse:
    """Ring for the worker once more: the decision is stored and stays the same."""
    row = get_object_or_404(Escalation, pk=pk)
    if row.state == Escalation.State.DECIDED and row.thread:
        heard = desk.wake(row.thread)
        kept = "The broker did not answer. The decision is kept and is taken up within seconds of its return."
        word = "A worker was called." if heard else kept
        messages.info(request, word, extra_tags="info")
    return redirect("escalations:escalation", pk)


@require_safe
@needs(permissions.check_user_can_read)
def decisions(request: HttpRequest) -> HttpResponse:
    """Every decision, the newest first."""
    form = decided.DecisionFilters(request.GET)
    page = keysets.asked_for(form.rows(), order=decided.NEWEST, size=decided.SIZE, query=request.GET)
    context = {"form": form, "page": page, "rows": decided.lines(page.rows), "kept": keysets.kept(request.GET)}
    return render(request, "escalations/decisions.html", context)


def _case(request: HttpRequest, pk: int) -> Case:
    row = get_object_or_404(Escalation.objects.select_related("decision"), pk=pk)
    return Case(row, user=request.user, now=timezone.now())


def _case_page(
    request: HttpRequest, pk: int, *, form: DecisionForm | None = None, fact: facts.Fact | None = None
) -> HttpResponse:
    """Return the page as it is now: after a lost race with the winner's name, after a bad form with what was typed."""
    case = _case(request, pk)
    before, after = inbox.neighbours(case.escalation)
    context = {
        **case.panel,
        "case": case,
        "form": form,
        "conflict": _conflict(fact, form=form, user=request.user) if fact else None,
        "before": before,
        "after": after,
        "reasons": REASONS,
        "may_decide": permissions.user_can_decide(request.user),
        "may_approve": permissions.user_can_approve(request.user, case.escalation),
    }
    status = HTTPStatus.CONFLICT if fact else HTTPStatus.UNPROCESSABLE_ENTITY if form else HTTPStatus.OK
    return render(request, "escalations/escalation.html", context, status=status)


def _conflict(fact: facts.Fact, *, form: DecisionForm | None, user: Any) -> dict[str, Any]:
    """Return what stood in the way, and what became of what the person wanted."""
    wanted = questions.WANTED[form.cleaned_data["kind"]] if form and form.is_valid() else "claim"
    context: dict[str, Any] = {"sentence": str(fact), "wanted": wanted, "held": isinstance(fact, facts.HeldByAnother)}
    if isinstance(fact, facts.AlreadyDecided):
        verb = marks.DECISIONS[fact.kind].word.lower() if fact.kind in marks.DECISIONS else "decided"
        name = "You" if fact.name == user.get_username() else fact.name[:1].upper() + fact.name[1:]
        context |= {"sentence": f"{name} already {verb} this", "at": fact.at, "decided": True}
    return context


def _grouped(lines: list[inbox.Line], *, view: str) -> list[tuple[str, list[inbox.Line]]]:
    """Return undecided lines by urgency, others as one group without a heading."""
    if view not in ("open", "mine", "unclaimed"):
        return [("", lines)] if lines else []
    groups = ((word, [line for line in lines if line.urgency == name]) for name, word in inbox.GROUPS.items())
    return [(word, found) for word, found in groups if found]
