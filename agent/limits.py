"""The pages of the limits, for admins: what is set and by whom, the switch of all writes, and what waits for a second admin."""

from typing import Any

import structlog
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from agent import amendments, backtests, numbers, rulebook
from agent.amendments import Change
from agent.limit_forms import AnswerForm, NumberForm, SwitchForm
from agent.numbers import RULES, Rule
from agent.permissions import check_user_can_set_limits
from agent.tools import registry
from ledger import connections, wiring
from ledger.roles import needs
from outbox import bell, rates, sends_after
from outbox.forms import PauseForm, RateForm

log = structlog.get_logger()
SAID = {
    amendments.NothingChanges: "That is what counts already.",
    amendments.AlreadyAsked: "A change of this already waits for a second admin: that one has to end first.",
    amendments.AlreadyEnded: "This request has ended already.",
    amendments.NotAllowed: "Another admin has to confirm or refuse what you asked for; withdraw it if it is not wanted any more.",
}
REFUSALS = tuple(SAID)
TOO_LONG = f"There is too much history to count in {backtests.SECONDS} seconds. The limit can be set all the same."


@require_safe
@needs(check_user_can_set_limits)
def limits(request: HttpRequest) -> HttpResponse:
    """Show every rule with what counts now, what is paused, and what waits."""
    return _draw_all(request)


@require_POST
@needs(check_user_can_set_limits)
def pause(request: HttpRequest) -> HttpResponse:
    """Pause writes, all or one tool's, at once; or ask that they go on, which a second admin confirms."""
    form = SwitchForm(request.POST, tools=_writing())
    if not form.is_valid():
        return _draw_all(request, switch_form=form, status=422)
    try:
        done = _make(request, form.change(), reason=form.cleaned_data["reason"])
    except REFUSALS as refusal:
        form.add_error("reason", SAID[type(refusal)])
        return _draw_all(request, switch_form=form, status=409)
    messages.success(request, done)
    return redirect("agent:limits")


@require_POST
@needs(check_user_can_set_limits)
def send_after(request: HttpRequest) -> HttpResponse:
    """Set how long the messages of a topic wait before they leave; it counts for what is queued from then on."""
    form = PauseForm(request.POST)
    if not form.is_valid():
        return _draw_all(request, pause_form=form, status=422)
    given = form.cleaned_data
    try:
        with connections.writing() as conn:
            sends_after.set_pause(conn, **given, user=int(request.user.pk))
    except sends_after.NothingChanges:
        form.add_error("seconds", SAID[amendments.NothingChanges])
        return _draw_all(request, pause_form=form, status=409)
    log.warning("agent.send_after.set", topic=given["topic"], seconds=given["seconds"], user=request.user.pk)
    done = f"can be undone for {sends_after.words(given['seconds'])}" if given["seconds"] else "leave at once"
    messages.success(request, f"Messages of {given['topic']} that are queued from now on {done}.")
    return redirect("agent:limits")


@require_POST
@needs(check_user_can_set_limits)
def rate(request: HttpRequest) -> HttpResponse:
    """Set how many messages a minute leave for a destination; the next that is claimed keeps to it."""
    form = RateForm(request.POST)
    if not form.is_valid():
        return _draw_all(request, rate_form=form, status=422)
    given = form.cleaned_data
    try:
        with connections.writing() as conn:
            rates.set_rate(conn, **given, user=int(request.user.pk))
    except rates.NothingChanges:
        form.add_error("rate", SAID[amendments.NothingChanges])
        return _draw_all(request, rate_form=form, status=409)
    log.warning("agent.rate.set", **{name: given[name] for name in ("destination", "rate", "burst")}, user=request.user.pk)
    bell.ring("outbox.deliver")
    speed = rates.words(given["rate"], given["burst"])
    messages.success(request, f"Messages leave for {given['destination']} {speed}, from now on.")
    return redirect("agent:limits")


@require_safe
@needs(check_user_can_set_limits)
def limit(request: HttpRequest, rule: str) -> HttpResponse:
    """Show one rule; with `try`, also what a number would have done in the last days."""
    found = _rule(rule)
    if "try" not in request.GET:
        return _draw_one(request, found, form=_form(found, initial=request.GET.dict()))
    form = _form(found, data=request.GET, trying=True)
    if not form.is_valid():
        return _draw_one(request, found, form=form, status=422)
    try:
        with connections.writing() as conn:
            return _draw_one(request, found, form=form, answer=backtests.answer(conn, change=form.change()))
    except backtests.TooLong:
        form.add_error("value", TOO_LONG)
    return _draw_one(request, found, form=form)


@require_POST
@needs(check_user_can_set_limits)
def set_limit(request: HttpRequest, rule: str) -> HttpResponse:
    """Set a stricter number at once; ask for a looser one, which a second admin confirms."""
    found = _rule(rule)
    form = _form(found, data=request.POST)
    if not form.is_valid():
        return _draw_one(request, found, form=form, status=422)
    try:
        done = _make(request, form.change(), reason=form.cleaned_data["reason"])
    except REFUSALS as refusal:
        form.add_error("value", SAID[type(refusal)])
        return _draw_one(request, found, form=form, status=409)
    messages.success(request, done)
    return redirect("agent:limit", rule=rule)


@require_POST
@needs(check_user_can_set_limits)
def answer_request(request: HttpRequest, pk: int) -> HttpResponse:
    """Confirm, refuse or withdraw a change that was asked for."""
    form = AnswerForm(request.POST)
    if not form.is_valid():
        return _draw_all(request, problem="Say whether it is confirmed, refused or withdrawn.", status=422)
    answer = form.cleaned_data["answer"]
    try:
        with connections.writing() as conn:
            change = amendments.end(conn, request=pk, outcome=answer, user=int(request.user.pk))
    except amendments.Unknown as error:
        raise Http404 from error
    except REFUSALS as refusal:
        return _draw_all(request, problem=SAID[type(refusal)], status=409)
    log.warning("agent.limit.answered", answer=answer, user=request.user.pk, **change.key)
    words = numbers.words(**change.key)
    messages.success(request, f"{words}. It counts from now on." if answer == "confirmed" else f"{answer.capitalize()}: {words}.")
    return redirect("agent:limits")


def _make(request: HttpRequest, change: Change, *, reason: str) -> str:
    """Make a change in a transaction of its own, and return what was done."""
    with connections.writing() as conn:
        done = amendments.make(conn, change=change, reason=reason, user=int(request.user.pk))
    log.warning("agent.limit.set" if done == "set" else "agent.limit.asked", user=request.user.pk, **change.key)
    words = numbers.words(**change.key)
    return (
        f"{words}. It counts from now on." if done == "set" else f"Asked for: {words}. It counts once another admin confirms it."
    )


def _rule(name: str) -> Rule:
    if name not in RULES:
        raise Http404
    return RULES[name]


def _form(rule: Rule, **given: Any) -> NumberForm:
    with connections.writing() as conn:
        known = set(wiring.plugged("BACKSTOP_POLICY_FACTS").currencies(conn))
    return NumberForm(rule=rule, currencies=sorted(known | {code for _, _, code in rulebook.newest(rule.name) if code}), **given)


def _writing() -> list[str]:
    return [tool.name for tool in registry().values() if tool.writes]


def _draw_all(
    request: HttpRequest,
    *,
    switch_form: SwitchForm | None = None,
    pause_form: PauseForm | None = None,
    rate_form: RateForm | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    paused, pending = rulebook.pauses(), rulebook.pending()
    context = {
        "tabs": RULES.values(),
        "pauses": paused,
        "all_paused": any(not one.tool for one in paused),
        "stoppable": [name for name in _writing() if name not in {one.tool for one in paused}],
        "pending": pending,
        "asked": {one.row.tool for one in pending if one.row.rule == "kill_switch"},
        "rules": rulebook.summaries(),
        "always": [*wiring.plugged("BACKSTOP_POLICY_FACTS").always, *numbers.ALWAYS],
        "history": rulebook.history(),
        "switch_form": switch_form or SwitchForm(tools=_writing()),
        "undo": {"current": sends_after.current(), "history": sends_after.history(), "form": pause_form or PauseForm()},
        "rates": {"current": rates.current(), "history": rates.history(), "form": rate_form or RateForm()},
        "problem": problem,
    }
    return render(request, "agent/limits.html", context, status=status)


def _draw_one(
    request: HttpRequest, rule: Rule, *, form: NumberForm, answer: backtests.Answer | None = None, status: int = 200
) -> HttpResponse:
    context = {
        "rule": rule,
        "tabs": RULES.values(),
        "label": {"money": "Amount", "hours": "Hours", "uses": "Uses"}[rule.unit],
        "sample": numbers.money(25_000, "EUR"),
        "standing": rulebook.standing(rule, currencies=[code for code, _ in form.fields["currency"].choices if code]),
        "pending": rulebook.pending(rule.name),
        "history": rulebook.history(rule.name),
        "form": form,
        "answer": answer,
    }
    return render(request, "agent/limit.html", context, status=status)
