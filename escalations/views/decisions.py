"""The decision: a signature, a rejection, an answer, a retry, closing; and every decision that was taken."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from escalations import decided, desk, facts, permissions, policies
from escalations.cases import Case
from escalations.forms import DecisionForm
from escalations.models import Escalation
from escalations.views import cases
from ledger import keysets, marks
from ledger.roles import needs


@require_POST
@needs(permissions.check_user_can_decide)
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the one decision, or sign; whoever comes second is told who was first."""
    case, form = cases.case_of(request, pk), DecisionForm(request.POST)
    if not form.is_valid():
        problems = [error for errors in form.errors.values() for error in errors]
        return cases.page(request, case, form=form, opened=str(form.data.get("kind", "")), problems=problems)
    given = form.cleaned_data
    try:
        said = _decide(request, pk, given)
    except facts.Fact as fact:
        return cases.page(request, cases.case_of(request, pk), form=form, fact=fact, wanted=cases.wanted(given["kind"]))
    return _onwards(request, case, said)


def _decide(request: HttpRequest, pk: int, given: dict[str, Any]) -> str:
    """Do what was asked and return what became of it."""
    if given["kind"] not in policies.SIGNED:
        desk.decide(escalation=pk, kind=given["kind"], text=given["words"], user=request.user.id)
        return f"E-{pk}: {marks.DECISIONS[given['kind']].word.lower()}."
    signed = desk.sign(
        escalation=pk, user=request.user.id, revision=given["revision"], preview=given["preview"], text=given["words"]
    )
    if signed.decision is None:
        return f"E-{pk}: signed, {signed.signatures} of {signed.needs}. Nothing runs before the other reviewer signs."
    return f"E-{pk}: {marks.DECISIONS[signed.decision.kind].word.lower()}. It runs now."


def _onwards(request: HttpRequest, case: Case, said: str) -> HttpResponse:
    """Open the next case when the reviewer wants that and there is one; else stay with this one."""
    before, after, _ = cases.around(request, case)
    following = after or before
    if request.session.get(cases.NEXT) and following:
        messages.info(request, said, extra_tags="applied")
        return redirect(cases.address(request, following))
    return redirect(cases.address(request, case.escalation.id))


@require_POST
@needs(permissions.check_user_can_decide)
def opens_next(request: HttpRequest, pk: int) -> HttpResponse:
    """Remember whether the next case is opened after a decision."""
    cases.case_of(request, pk)
    request.session[cases.NEXT] = not request.session.get(cases.NEXT)
    return redirect(cases.address(request, pk))


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
    return redirect(cases.address(request, pk))


@require_safe
@needs(permissions.check_user_can_read)
def decisions(request: HttpRequest) -> HttpResponse:
    """Every decision, the newest first."""
    form = decided.DecisionFilters(request.GET)
    page = keysets.asked_for(form.rows(), order=decided.NEWEST, size=decided.SIZE, query=request.GET)
    context = {"form": form, "page": page, "rows": decided.lines(page.rows), "kept": keysets.kept(request.GET)}
    return render(request, "escalations/decisions.html", context)
