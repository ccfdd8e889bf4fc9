"""The audit pages: what was applied, what was tried, one attempt in full, and the page of any id."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ledger import evidence, ids, keysets, links, marks, people, sentences
from ledger.filters import AttemptFilters, ExecutionFilters
from ledger.marks import of_attempt
from ledger.models import Attempt, AttemptOutcome
from ledger.permissions import check_user_can_read_trail
from ledger.roles import ADMIN, needs, roles_of

SIZE = 50
EXECUTIONS = keysets.Order(keys=("committed_at", "attempt_id", "call_index"))
ATTEMPTS = keysets.Order(keys=("opened_at", "id"))
OUTCOMES = keysets.Order(keys=("closed_at", "attempt_id"))


@require_safe
@needs(check_user_can_read_trail)
def executions(request: HttpRequest) -> HttpResponse:
    """Every applied call, newest first."""
    form = ExecutionFilters(request.GET)
    page = keysets.asked_for(form.rows(), order=EXECUTIONS, size=SIZE, query=request.GET)
    threads = links.conversations(row.thread for row in page.rows)
    staff, customers = _staff(page.rows), _customers(page.rows)
    effects = links.effects((row.thread, row.ai_message_id, row.call_index) for row in page.rows)
    rows = [
        {
            "execution": row,
            "mark": marks.of_call("applied", does=sentences.does(row.tool)),
            "effects": effects.get((row.thread, row.ai_message_id, row.call_index), []),
            "conversation": threads.get(row.thread),
            "sentence": sentences.applied(tool=row.tool, arguments=row.arguments, result=row.result),
            **_names(row, staff, customers),
        }
        for row in page.rows
    ]
    return render(request, "ledger/executions.html", _context(request, form, page, rows))


@require_safe
@needs(check_user_can_read_trail)
def attempts(request: HttpRequest) -> HttpResponse:
    """Every try at a batch, whatever became of it, newest first."""
    form = AttemptFilters(request.GET)
    rows = form.rows()
    order = OUTCOMES if rows.model is AttemptOutcome else ATTEMPTS
    page = keysets.asked_for(rows, order=order, size=SIZE, query=request.GET)
    return render(request, "ledger/attempts.html", _context(request, form, page, _tried(page.rows)))


@require_safe
@needs(check_user_can_read_trail)
def attempt(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One attempt: what was asked, what ran, what was undone, what was told."""
    found = evidence.one(pk)
    if found is None:
        raise Http404
    batch = {"thread": found.row.thread, "ai_message_id": found.row.ai_message_id}
    calls = [(found.row.thread, found.row.ai_message_id, call.index) for call in found.calls]
    effects = links.effects(calls) if found.result == "committed" else {}
    asked = links.staff_message(found.row.thread, before=found.at)
    context = {
        "item": found,
        "asked": asked,
        "author": people.names([asked.author]).get(asked.author, "") if asked else "",
        "conversation": links.conversations([found.row.thread]).get(found.row.thread),
        "questions": links.questions(**batch),
        "effects": [effect for key in calls for effect in effects.get(key, ())],
        "may_open_outbox": ADMIN in roles_of(request.user),
        "others": _others(found),
        "nav": "attempts",
        **_names(found.attempt, _staff([found.attempt]), _customers([found.attempt])),
    }
    return render(request, "ledger/attempt.html", context)


@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """Go to the page about any id, ours or the provider's."""
    text = request.GET.get("q", "").strip()
    if address := ids.find(text, roles=roles_of(request.user)):
        return HttpResponseRedirect(address)
    return render(request, "ledger/find.html", {"q": text}, status=404 if text else 200)


def _context(request: HttpRequest, form: Any, page: keysets.Page, rows: list[Any]) -> dict[str, Any]:
    """Return what both lists need."""
    return {"form": form, "page": page, "rows": rows, "kept": keysets.kept(request.GET)}


def _tried(rows: list[Any]) -> list[dict[str, Any]]:
    """Return attempts or outcomes as lines of the table, in their order."""
    keys = [row.id if isinstance(row, Attempt) else row.attempt_id for row in rows]
    started = Attempt.objects.filter(id__in=keys)
    ended = AttemptOutcome.objects.filter(attempt_id__in=keys)
    found = {item.id: item for item in evidence.assemble(started, ended, changes=False)}
    threads = links.conversations(item.row.thread for item in found.values())
    known = [item.attempt for item in found.values()]
    staff, customers = _staff(known), _customers(known)
    return [
        {
            "item": found[key],
            "conversation": threads.get(found[key].row.thread),
            **_names(found[key].attempt, staff, customers),
        }
        for key in keys
        if key in found
    ]


def _others(found: evidence.Evidence) -> list[dict[str, Any]]:
    """Return the other attempts at the same batch, oldest first."""
    same = {"thread": found.row.thread, "ai_message_id": found.row.ai_message_id}
    started = dict(Attempt.objects.filter(**same).values_list("id", "opened_at"))
    ended = {
        key: (outcome, at)
        for key, outcome, at in AttemptOutcome.objects.filter(**same).values_list("attempt_id", "outcome", "closed_at")
    }
    lines = [
        {"id": key, "at": started.get(key) or ended[key][1], "mark": of_attempt(ended.get(key, (None,))[0])}
        for key in {*started, *ended}
        if key != found.id
    ]
    return sorted(lines, key=lambda line: line["at"])


def _staff(rows: list[Any]) -> dict[int, str]:
    return people.names(row.on_behalf_of for row in rows if row)


def _customers(rows: list[Any]) -> dict[int, str]:
    return people.subject_names(row.subject for row in rows if row)


def _names(row: Any, staff: dict[int, str], customers: dict[int, str]) -> dict[str, str]:
    """Return who asked and for whom; an attempt whose own row was lost names nobody."""
    if row is None:
        return {"person": "", "customer": ""}
    return {
        "person": staff.get(row.on_behalf_of, f"user {row.on_behalf_of}"),
        "customer": customers.get(row.subject, f"customer {row.subject}"),
    }
