"""What reviewers make of the calls: edits, drops, take-overs, and another look at what would happen."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from escalations import desk, edits, facts, permissions
from escalations.cases import Case
from escalations.views import cases
from ledger.roles import needs

Calls = Sequence[Mapping[str, Any]]
UNREADABLE = "Reload the page: an edit says which proposal was shown."


@require_POST
@needs(permissions.check_user_can_decide)
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Make the next revision of what was typed; every error stands under its field, with what was typed."""
    case = cases.case_of(request, pk)
    forms = edits.of(case.proposal, data=request.POST)
    problems = edits.problems(forms)
    if problems:
        return cases.page(request, case, editing=forms, problems=problems)
    calls = [{"index": index, "arguments": form.arguments} for index, form in forms.items()]
    try:
        desk.revise(escalation=pk, user=request.user.id, calls=calls, shown=_revision(request))
    except facts.EditRefused as fact:
        return cases.page(request, case, editing=forms, problems=edits.refused(forms, fact))
    except facts.NothingChanged as fact:
        return cases.page(request, case, editing=forms, problems=[f"{fact} Change a value, or discard."])
    except facts.Fact as fact:
        return cases.page(request, cases.case_of(request, pk), fact=fact, wanted="edit")
    return redirect(cases.address(request, pk, fragment="proof"))


@require_POST
@needs(permissions.check_user_can_decide)
def drop(request: HttpRequest, pk: int) -> HttpResponse:
    """Make the next revision of the calls that are ticked: the others are dropped, or put back."""
    case = cases.case_of(request, pk)
    ticked = set(request.POST.getlist("keep"))
    return _revised(request, case, calls=[call for call in _current(case) if str(call["index"]) in ticked], wanted="edit")


@require_POST
@needs(permissions.check_user_can_decide)
def take_over(request: HttpRequest, pk: int) -> HttpResponse:
    """Make the next revision a person's: the same calls, performed by the reviewer."""
    case = cases.case_of(request, pk)
    kept = {call.index for call in case.proposal.kept}
    calls = [call for call in _current(case) if call["index"] in kept]
    return _revised(request, case, calls=calls, wanted="taking over", as_person=True, text=request.POST.get("text", "")[:2000])


@require_POST
@needs(permissions.check_user_can_decide)
def preview(request: HttpRequest, pk: int) -> HttpResponse:
    """Have the newest revision run for real and rolled back once more."""
    cases.case_of(request, pk)
    try:
        desk.ask_preview(escalation=pk, user=request.user.id)
    except facts.Fact as fact:
        return cases.page(request, cases.case_of(request, pk), fact=fact, wanted="preview")
    return redirect(cases.address(request, pk, fragment="proof"))


def _revised(
    request: HttpRequest, case: Case, *, calls: Calls, wanted: str, as_person: bool = False, text: str = ""
) -> HttpResponse:
    pk, user = case.escalation.id, request.user.id
    as_person = as_person or case.taken_over
    try:
        desk.revise(escalation=pk, user=user, calls=calls, shown=_revision(request), as_person=as_person, text=text)
    except facts.NothingChanged:
        pass  # a box that was ticked and unticked again
    except facts.EditRefused as fact:
        return cases.page(request, case, problems=[str(fact)])
    except facts.Fact as fact:
        return cases.page(request, cases.case_of(request, pk), fact=fact, wanted=wanted)
    return redirect(cases.address(request, pk, fragment="proof"))


def _current(case: Case) -> Calls:
    """Return each of the agent's calls as it would run now; one that was dropped as it was proposed."""
    now = {call["index"]: call for call in (case.proposal.revision.calls if case.proposal.revision else ())}
    return [now.get(call["index"], call) for call in case.proposal.original]


def _revision(request: HttpRequest) -> int:
    """Return the number that was on the screen; one that cannot be is never the newest."""
    text = request.POST.get("revision", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
