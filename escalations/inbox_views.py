"""The pages of the inbox: the list, the tray of what is selected, acts on one or several, and the next one."""

from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from escalations import bulk, desk, facts, inbox, permissions, reviewers, snoozes, trays
from escalations.forms import REASONS
from escalations.inbox_filters import NAMES, WAITING_VIEWS, InboxFilters
from ledger import keysets
from ledger.filters import numbered
from ledger.roles import needs


@require_http_methods(["GET", "HEAD", "POST"])
@needs(permissions.check_user_can_read)
def inbox_page(request: HttpRequest) -> HttpResponse:
    """What waits for a person, the most urgent first; and what was decided, the newest first. Acts are posted to it too."""
    return _act(request) if request.method == "POST" else _page(request)


@require_safe
@needs(permissions.check_user_can_decide)
def tray(request: HttpRequest) -> HttpResponse:
    """The tray of what is selected, to be put into the page."""
    return render(request, "escalations/_inbox_tray.html", _tray(request, _selected(request)))


@require_http_methods(["GET", "HEAD", "POST"])
@needs(permissions.check_user_can_claim)
def next_page(request: HttpRequest) -> HttpResponse:
    """Go to the next one: posted, the most urgent that nobody holds, which is claimed; else what follows `after` in its view."""
    if request.method == "POST":
        found = desk.claim_next(user=request.user.id)
        word = "Nothing is unclaimed."
    else:
        form, after = InboxFilters(request.GET), numbered(request.GET.get("after", ""), "E-")
        found = inbox.next_one(filters=form, after=after, user=request.user.id, now=timezone.now())
        word = "Nothing else waits in this view."
    query = InboxFilters(request.GET).query
    if found is None:
        messages.info(request, word, extra_tags="info")
        return redirect(_address("escalations:inbox", query=query))
    return redirect(_address("escalations:escalation", found, query=query))


def _address(name: str, *parts: int, query: str) -> str:
    return reverse(name, args=parts) + (f"?{query}" if query else "")


def _page(request: HttpRequest, *, more: dict[str, Any] | None = None, status: int = HTTPStatus.OK) -> HttpResponse:
    """Return the page, or only its moving parts to a script that asks for them."""
    now, user = timezone.now(), request.user
    form = InboxFilters(request.GET)
    rows = form.rows(user=user.id, now=now)
    page = keysets.asked_for(rows, order=form.order, size=inbox.SIZE, query=request.GET)
    counts, totals = inbox.tabs(user=user.id, now=now), inbox.totals(rows, view=form.shown, now=now)
    may_decide = permissions.user_can_decide(user)
    selected = _selected(request) if may_decide else []
    context = {
        "form": form,
        "view": form.shown,
        "waits": form.shown in WAITING_VIEWS,
        "selectable": may_decide and form.shown in (*WAITING_VIEWS, "snoozed"),
        "tabs": [(name, word, counts.get(name)) for name, word in NAMES.items()],
        "late": totals["late"],
        "total": totals["all"],
        "oldest": inbox.ago(now - counts["oldest"]) if counts["oldest"] else "",
        "page": page,
        "groups": inbox.groups(inbox.lines(page.rows, user=user.id, now=now), view=form.shown, counts=totals),
        "kept": keysets.kept(request.GET),
        "may_decide": may_decide,
        "unclaimed": counts["unclaimed"],
        "now": now,
        **_tray(request, selected),
        **(more or {}),
    }
    name = "escalations/_inbox_parts.html" if request.headers.get("HX-Request") else "escalations/inbox.html"
    return render(request, name, context, status=status)


def _act(request: HttpRequest) -> HttpResponse:
    """Do what was asked for to each item, and show the same view again with what became of each."""
    permissions.check_user_can_decide(request.user)
    form = bulk.ActForm(_posted(request))
    if not form.is_valid():
        more = {"act_form": form, **_tray(request, [item.id for item in form.cleaned_data.get("item", [])])}
        return _page(request, more=more, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    given = form.cleaned_data
    try:
        told = bulk.perform(given, user=request.user.id, now=timezone.now())
    except facts.Fact as fact:
        more = {"refused": str(fact), **_tray(request, [item.id for item in given["item"]])}
        return _page(request, more=more, status=HTTPStatus.CONFLICT)
    done = sum(item.done for item in told)
    more = {"told": told, "done": done, "left": len(told) - done, "act": bulk.ACTS[given["act"]], "tray": None}
    return _page(request, more=more, status=HTTPStatus.OK if done else HTTPStatus.CONFLICT)


def _posted(request: HttpRequest) -> Any:
    """Return what was sent, words included; the button of one line says act and item at once: "claim:12"."""
    posted = request.POST.copy()
    act, found, number = posted.get("one", "").partition(":")
    if found:
        posted["act"] = act
        posted.setlist("item", [number])
    posted["text"] = posted.get(f"text-{posted.get('act', '')}", "")  # each sheet of the tray has a box of its own
    return posted


def _selected(request: HttpRequest) -> list[int]:
    found = (numbered(text, "E-") for text in request.GET.getlist("select"))
    return [number for number in found if number is not None][: trays.MOST]


def _tray(request: HttpRequest, ids: list[int]) -> dict[str, Any]:
    """Return what the tray's template shows."""
    found = trays.tray(ids, user=request.user.id, now=timezone.now())
    return {
        "tray": found,
        "selected": {item.id for item in found.items} if found else set(),
        "reasons": REASONS,
        "snoozes": snoozes.SPANS,
        "reviewers": reviewers.others(request.user) if found else [],
        "query": InboxFilters(request.GET).query,
    }
