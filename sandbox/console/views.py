"""The page of the Stripe sandbox: what is in it, what moved, what goes wrong, how webhooks go, what time it is there."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import structlog
from django import forms as fields
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from ledger.roles import needs
from sandbox.breaking.permissions import only_here
from sandbox.console import forms, pages, remote
from sandbox.console.permissions import check_user_can_run_sandbox as check_user
from sandbox.console.remote import NoAnswer, Refused, Remote

log = structlog.get_logger()
SILENT = "The Stripe sandbox does not answer. Its supervisor starts it again within seconds."
UNKNOWN = "The Stripe sandbox did not answer, so it may have done it or not. Look before you repeat it."
WENT = {
    "pause": "Webhooks wait until they are sent again.",
    "resume": "Webhooks are sent again.",
    "delay": "Webhooks are late by that much of the sandbox’s time.",
    "duplicate": "From now on each webhook is sent that often.",
    "reorder": "The newest webhook goes first.",
    "in_order": "The oldest webhook goes first.",
    "drop": "So many webhooks are not sent at all.",
    "normal": "Webhooks are sent as they should be.",
    "resend": "The event is sent once more, with the id that it had.",
    "twin": "A second event about the same change is sent, with an id of its own.",
}


@require_safe
@needs(check_user)
@only_here
def objects(request: HttpRequest) -> HttpResponse:
    """Show customers, payments, refunds, invoices and credit notes."""
    return _page(request, "objects")


@require_safe
@needs(check_user)
@only_here
def money(request: HttpRequest) -> HttpResponse:
    """Show the money log and its sums."""
    return _page(request, "money")


@require_safe
@needs(check_user)
@only_here
def faults(request: HttpRequest) -> HttpResponse:
    """Show what goes wrong, and what could."""
    return _page(request, "faults")


@require_safe
@needs(check_user)
@only_here
def webhooks(request: HttpRequest) -> HttpResponse:
    """Show deliveries, and how they go."""
    return _page(request, "webhooks")


@require_safe
@needs(check_user)
@only_here
def clock(request: HttpRequest) -> HttpResponse:
    """Show both clocks and what time will end."""
    return _page(request, "clock")


@require_POST
@needs(check_user)
@only_here
def add_fault(request: HttpRequest) -> HttpResponse:
    """Let some calls fail from now on."""
    form = forms.FaultForm(request.POST)
    return _do(
        request, form, tab="faults", act=lambda there: there.post("faults", form.wish()), done="From now on it goes wrong."
    )


@require_POST
@needs(check_user)
@only_here
def lift_fault(request: HttpRequest) -> HttpResponse:
    """Let one fault end, or all of them."""
    form = forms.LiftForm(request.POST)

    def act(there: Remote) -> object:
        number = form.cleaned_data["fault"]
        return there.delete("faults", id=number) if number else there.delete("faults")

    return _do(request, form, tab="faults", act=act, done="Lifted. What it struck stays as it is.")


@require_POST
@needs(check_user)
@only_here
def set_limit(request: HttpRequest) -> HttpResponse:
    """Let only so many calls a second through."""
    form = forms.LimitForm(request.POST)
    done = "The limit is in force. Calls beyond it are told to wait."
    return _do(request, form, tab="faults", act=lambda there: there.post("limit", form.cleaned_data), done=done)


@require_POST
@needs(check_user)
@only_here
def behave(request: HttpRequest) -> HttpResponse:
    """Change how webhooks are delivered, or deliver one once more."""
    form = forms.BehaviourForm(request.POST)
    done = WENT.get(request.POST.get("action", ""), "")
    return _do(request, form, tab="webhooks", act=lambda there: there.post("webhooks", form.wish()), done=done)


@require_POST
@needs(check_user)
@only_here
def forge(request: HttpRequest) -> HttpResponse:
    """Deliver an event in a way that must be refused, and say how it was answered."""
    form = forms.ForgeForm(request.POST)

    def act(there: Remote) -> str:
        answer = there.post("webhooks", {"action": "forge", **form.cleaned_data})["status"]
        return f"Backstop answered {answer}: {'taken in, which it should not have been.' if answer < 300 else 'refused.'}"

    return _do(request, form, tab="webhooks", act=act)


@require_POST
@needs(check_user)
@only_here
def advance(request: HttpRequest) -> HttpResponse:
    """Move the sandbox's clock forward."""
    form = forms.ClockForm(request.POST)

    def act(there: Remote) -> object:
        return there.post("clock", {"advance": form.seconds()})

    return _do(request, form, tab="clock", act=act, done="The sandbox’s clock went forward. What was due by then has happened.")


@require_POST
@needs(check_user)
@only_here
def settle(request: HttpRequest) -> HttpResponse:
    """End something that is under way, as a bank, a customer or the Dashboard would."""
    form = forms.SettleForm(request.POST)
    tab = "objects" if request.POST.get("from") == "objects" else "clock"
    return _do(request, form, tab=tab, act=lambda there: there.post("settle", form.cleaned_data), done="It is so there now.")


# -- what the views share ----------------------------------------------------------------------------


def _page(request: HttpRequest, tab: str, *, status: int = HTTPStatus.OK, form: fields.Form | None = None) -> HttpResponse:
    """Draw a tab, or say in its place that the sandbox does not answer or why it will not."""
    try:
        with remote.connected() as there:
            context: dict[str, Any] = pages.shown(tab, remote=there, query=request.GET)
    except (NoAnswer, Refused) as reason:
        context = {"silent": SILENT if isinstance(reason, NoAnswer) else str(reason)}
        status = HTTPStatus.OK if request.htmx else HTTPStatus.SERVICE_UNAVAILABLE  # else htmx would show it as an error
    context |= {"tab": tab, "tabs": pages.TABS, "place": _place(request), **({"form": form} if form else {})}
    return render(request, f"sandbox/console_{tab}.html", context, status=status)


def _do(request: HttpRequest, form: fields.Form, *, tab: str, act: Callable[[Remote], object], done: str = "") -> HttpResponse:
    """Carry out one wish and show the tab again, with what was done: a sentence, or what the act returned."""
    if not form.is_valid():
        return _refused(request, form, tab=tab)
    try:
        with remote.connected() as there:
            said = act(there)
    except (NoAnswer, Refused) as reason:
        messages.error(request, UNKNOWN if isinstance(reason, NoAnswer) else str(reason), extra_tags="failed")
    else:
        log.info("sandbox.provider.changed", path=request.path, wish=form.cleaned_data, user=request.user.pk)
        messages.info(request, done or str(said))
    # In place at once: after a redirect the page's own polling could be the one that reads the message.
    return _page(request, tab) if request.htmx else redirect(reverse(f"sandbox:{tab}") + _place(request))


def _place(request: HttpRequest) -> str:
    """Return the query of the page that is shown; forms carry it on, so that a wish leaves its reader where they are."""
    return f"?{request.GET.urlencode()}" if request.GET else ""


def _refused(request: HttpRequest, form: fields.Form, *, tab: str) -> HttpResponse:
    """Say what is wrong with a form, beside its fields where the page has them."""
    if request.htmx or type(form) not in (forms.FaultForm, forms.ClockForm):
        sentence = " ".join(error for errors in form.errors.values() for error in errors)
        words = {"title": "Nothing was changed", "text": sentence, "icon": "hand"}
        if request.htmx:
            return render(request, "_error_strip.html", {"page": words}, status=HTTPStatus.UNPROCESSABLE_ENTITY)
        messages.error(request, f"Nothing was changed. {sentence}", extra_tags="failed")
        return _page(request, tab, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return _page(request, tab, status=HTTPStatus.UNPROCESSABLE_ENTITY, form=form)
