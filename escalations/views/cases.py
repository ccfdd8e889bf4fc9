"""One case: its page, what came of it, and who else looks."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from escalations import desk, edits, facts, forms, inbox, permissions, questions, reviewers, snoozes
from escalations.cases import Case
from escalations.inbox_filters import InboxFilters
from escalations.models import Escalation
from ledger.roles import needs

NEXT = "desk_opens_next"  # of the session: after a decision the next case is opened


@require_safe
@needs(permissions.check_user_can_read)
def escalation(request: HttpRequest, pk: int) -> HttpResponse:
    """One escalation, to look at, to change and to decide."""
    case = case_of(request, pk)
    editing = edits.of(case.proposal) if "edit" in request.GET and may_edit(case) else None
    response = page(request, case, editing=editing)
    if request.headers.get("HX-Request") and not case.allowed:  # it was decided while it was looked at
        response["HX-Refresh"] = "true"
    return response


@require_safe
@needs(permissions.check_user_can_read)
def result(request: HttpRequest, pk: int) -> HttpResponse:
    """The part of the page that says what came of the decision; it asks again while that may change."""
    case = case_of(request, pk)
    response = render(request, "escalations/_result.html", {"case": case})
    if not case.moving:  # the last answer: the rest of the page tells another story now
        response["HX-Refresh"] = "true"
    return response


@require_POST
@needs(permissions.check_user_can_read)
def presence(request: HttpRequest, pk: int) -> HttpResponse:
    """Note that somebody looks; say who else does, and whether the page still shows what is there."""
    case = case_of(request, pk)
    lookers = desk.see(escalation=pk, user=request.user.id, editing=request.POST.get("editing") == "1")
    moved = request.POST.get("shown", "") not in ("", shown(case))
    return render(
        request, "escalations/_presence.html", {"case": case, "row": case.escalation, "lookers": lookers, "moved": moved}
    )


def shown(case: Case) -> str:
    """Return what a page shows, as one word: another word means that it shows something old."""
    newest, row = case.proposal.newest, case.escalation
    holder = row.claimed_by if case.holder else ""
    return f"{row.state}.{holder}.{case.proposal.number}.{newest.id if newest else 0}.{len(case.proposal.signatures)}"


def case_of(request: HttpRequest, pk: int) -> Case:
    """Return the escalation as the person sees it now, or raise Http404."""
    row = get_object_or_404(Escalation.objects.select_related("decision"), pk=pk)
    return Case(row, user=request.user, now=timezone.now())


def may_edit(case: Case) -> bool:
    """Return whether the reader may change the calls now."""
    return case.with_calls and case.may_decide and not case.held_by_another


def page(
    request: HttpRequest,
    case: Case,
    *,
    form: forms.DecisionForm | None = None,
    editing: Mapping[int, Any] | None = None,
    opened: str = "",
    problems: Sequence[str] = (),
    fact: facts.Fact | None = None,
    wanted: str = "",
    more: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Return the page as it is now: 409 after a lost race with the winner's name, 422 for a bad form with what was typed."""
    before, after, query = around(request, case)
    context = {
        "case": case,
        "form": form,
        "editing": editing,
        "opened": opened,
        "problems": problems,
        "conflict": conflict(fact, wanted=wanted, user=request.user) if fact else None,
        "before": before,
        "after": after,
        "next": after or before,
        "q": f"?{query}" if query else "",
        "q_more": f"&{query}" if query else "",
        "opens_next": bool(request.session.get(NEXT)),
        "shown": shown(case),
        "drops": may_edit(case) and len(case.proposal.calls) > 1 and not editing,
        "reasons": forms.REASONS,
        "snoozes": snoozes.SPANS,
        "reviewers": reviewers.others(request.user) if case.allowed and case.may_decide else [],
        **(more or {}),
    }
    status = HTTPStatus.CONFLICT if fact else HTTPStatus.UNPROCESSABLE_ENTITY if problems else HTTPStatus.OK
    return render(request, "escalations/escalation.html", context, status=status)


def around(request: HttpRequest, case: Case) -> tuple[int | None, int | None, str]:
    """Return the cases before and after this one in the view of the inbox that it was opened from, and that view's query."""
    filters = InboxFilters(request.GET)
    before, after = inbox.neighbours(case.escalation, filters=filters, user=request.user.id, now=case.now)
    return before, after, filters.query


def address(request: HttpRequest, pk: int, *, fragment: str = "") -> str:
    """Return where a case's page is, with the view of the inbox that it was opened from."""
    query = InboxFilters(request.GET).query
    return reverse("escalations:escalation", args=[pk]) + (f"?{query}" if query else "") + (f"#{fragment}" if fragment else "")


def conflict(fact: facts.Fact, *, wanted: str, user: Any) -> dict[str, Any]:
    """Return what stood in the way, and what became of what the person wanted."""
    context: dict[str, Any] = {"sentence": str(fact), "wanted": wanted, "held": isinstance(fact, facts.HeldByAnother)}
    if isinstance(fact, facts.AlreadyDecided):
        name = "You" if fact.name == user.get_username() else fact.name[:1].upper() + fact.name[1:]
        context |= {"sentence": f"{name} already {fact.deed('this')}", "at": fact.at, "decided": True}
    return context


def wanted(kind: str) -> str:
    """Return a decision as the thing that somebody wanted."""
    return questions.WANTED.get(kind, "decision")
