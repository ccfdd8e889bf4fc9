"""What each tab of the page shows, asked of the control API."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import QueryDict
from django.utils import timezone

from sandbox.console import forms, lines, mishaps
from sandbox.console.remote import Remote

Context = dict[str, Any]
SIZE = 25  # lines of a list
TABS = (("objects", "Objects"), ("money", "Money"), ("faults", "Faults"), ("webhooks", "Webhooks"), ("clock", "Clock"))
LISTED = "customer,payment_intent,refund,invoice,credit_note"


def objects(remote: Remote, query: QueryDict) -> Context:
    """Customers, payments, refunds, invoices and credit notes, newest first; or the one object of an id, of whichever kind."""
    form = forms.ObjectFilters(query)
    wanted = form.cleaned_data if form.is_valid() else {"kind": "", "q": ""}
    if wanted["q"]:
        found = remote.get("objects", id=wanted["q"].strip())
    else:
        found = remote.get("objects", kind=wanted["kind"] or LISTED, limit=SIZE, before=before(query))
    kinds = list(forms.ObjectFilters.KINDS.items())
    return {"rows": lines.objects(found["objects"]), "older": found["next"], **wanted, "kinds": kinds}


def money(remote: Remote, query: QueryDict) -> Context:
    """The money log, newest first, with its sums."""
    found = remote.get("money", limit=SIZE, before=before(query))
    sums = lines.sums(remote.get("sums")["sums"])
    return {"rows": lines.moves(found["movements"]), "older": found["next"], "sums": sums}


def faults(remote: Remote, query: QueryDict) -> Context:
    """Every fault in force or spent, newest first, and the limit."""
    rows = [mishaps.line(rule) for rule in reversed(remote.get("faults")["faults"])]
    return {"rows": rows, "form": forms.FaultForm(), "patience": settings.STRIPE_TIMEOUTS[1], "limit": remote.get("limit")}


def webhooks(remote: Remote, query: QueryDict) -> Context:
    """How deliveries go, and the newest of them."""
    found = remote.get("webhooks", limit=SIZE, before=before(query))
    late = lines.span(found["delay"]) if found["delay"] else ""
    rows, hows = lines.deliveries(found["deliveries"]), list(forms.ForgeForm.HOWS.items())
    return {"rows": rows, "older": found["next"], "manners": found, "late": late, "hows": hows}


def clock(remote: Remote, query: QueryDict) -> Context:
    """What has not ended yet."""
    rows = lines.objects(remote.get("under_way")["under_way"])
    return {"rows": rows, "form": forms.ClockForm(), "jumps": list(forms.JUMPS.items())}


SHOWN: dict[str, Callable[[Remote, QueryDict], Context]] = {
    "objects": objects, "money": money, "faults": faults, "webhooks": webhooks, "clock": clock,
}  # fmt: skip


def shown(tab: str, *, remote: Remote, query: QueryDict) -> Context:
    """Return what a tab shows, and how late it is there."""
    time = remote.get("clock")
    there = {"there": lines.instant(time["now"]), "ahead": lines.span(time["ahead"]) if time["ahead"] else ""}
    return {**there, "here": timezone.now(), "before": query.get("before", ""), **SHOWN[tab](remote, query)}


def before(query: QueryDict) -> int | None:
    """Return the number that a page of a list begins before; one that is none counts as none."""
    text = query.get("before", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None
