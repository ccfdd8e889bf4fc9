"""What the inbox is narrowed by: views, and a form whose fields stand in the page's address."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db.models import BooleanField, Exists, OuterRef, Q
from django.db.models.expressions import RawSQL
from django.http import QueryDict

from escalations import questions
from escalations.models import Escalation, Revision, Signature
from ledger import keysets, people, wiring
from ledger.filters import numbered

URGENT = keysets.Order(keys=("due_at", "id"), descending=False)
WAKING = keysets.Order(keys=("snoozed_until", "id"), descending=False)
NEWEST = keysets.Order(keys=("id",))
NAMES = {
    "open": "Open",
    "mine": "Mine",
    "unclaimed": "Unclaimed",
    "second": "Needs a second",
    "snoozed": "Snoozed",
    "waiting": "Not run yet",
    "done": "Done",
    "expired": "Expired",
}
UNDECIDED = Q(state__in=["open", "claimed"])
WAITING_VIEWS = ("open", "mine", "unclaimed", "second")  # what waits for a person now, the most urgent first
AGES = {"15": "15 min", "60": "1 hour", "240": "4 hours", "1440": "1 day", "10080": "7 days"}
FIELDS = ("kind", "customer", "amount_from", "amount_to", "currency", "age", "q")
LARGEST = 10**12  # minor units


class InboxFilters(forms.Form):
    """View and filters, from the address of the page; each says in one sentence what is wrong with it."""

    view = forms.ChoiceField(
        required=False, choices=list(NAMES.items()), error_messages={"invalid_choice": "There is no view “%(value)s”."}
    )
    kind = forms.ChoiceField(
        required=False,
        choices=[("", "any"), *((kind, mark.word) for kind, mark in questions.KINDS.items())],
        error_messages={"invalid_choice": "There is no kind “%(value)s”."},
    )
    customer = forms.CharField(required=False, max_length=100)
    amount_from = forms.CharField(required=False, max_length=30)
    amount_to = forms.CharField(required=False, max_length=30)
    currency = forms.CharField(required=False, max_length=3)
    age = forms.ChoiceField(
        required=False,
        choices=[("", "any"), *((minutes, f"over {word}") for minutes, word in AGES.items())],
        error_messages={"invalid_choice": "“%(value)s” is not among the ages to choose from."},
    )
    q = forms.CharField(required=False, max_length=200)

    def clean_currency(self) -> str:
        """Return an ISO 4217 code in capitals."""
        code: str = self.cleaned_data["currency"].upper()
        if code and not re.fullmatch(r"[A-Z]{3}", code):
            raise forms.ValidationError(f"“{code}” is no currency: write its three letters, such as EUR.")
        return code

    def clean(self) -> dict[str, Any]:
        """Return the fields with the amounts in minor units; what makes no sense together is said at one of them."""
        given: dict[str, Any] = super().clean() or {}
        written = {name: given.pop(name, "") for name in ("amount_from", "amount_to")}
        currency = given.get("currency", "")
        if any(written.values()) and not currency and "currency" not in self.errors:
            self.add_error("currency", "Name the currency of the amount, such as EUR.")
        low, high = (self._minor(name, text, currency) for name, text in written.items())
        if low is not None and high is not None and low > high:
            self.add_error("amount_to", "The second amount is smaller than the first.")
        return given | {"amount_from": low, "amount_to": high}

    def _minor(self, name: str, text: str, currency: str) -> int | None:
        if not text or not currency:
            return None
        try:
            minor = int(wiring.plugged("BACKSTOP_MONEY_PARSE")(text, currency))
        except ValueError as error:
            self.add_error(name, str(error))
            return None
        if not 0 <= minor <= LARGEST:
            self.add_error(name, f"“{text}” is out of range for an amount.")
            return None
        return minor

    @property
    def shown(self) -> str:
        """Return the view that is open."""
        name: str = getattr(self, "cleaned_data", {}).get("view") or "open"
        return name

    @property
    def order(self) -> keysets.Order:
        """Return how its view is ordered."""
        return URGENT if self.shown in WAITING_VIEWS else WAKING if self.shown == "snoozed" else NEWEST

    @property
    def used(self) -> bool:
        """Return whether any filter is set, besides the view."""
        return any(self.data.get(name) for name in FIELDS)

    @property
    def used_more(self) -> bool:
        """Return whether a filter is set that the page folds away."""
        return any(self.data.get(name) for name in ("customer", "amount_from", "amount_to", "currency"))

    @property
    def query(self) -> str:
        """Return view and filters as the query of an address: what links and forms carry along."""
        kept = QueryDict(mutable=True)
        for name in ("view", *FIELDS):
            if (value := self.data.get(name)) and (name, value) != ("view", "open"):
                kept[name] = value
        return str(kept.urlencode())

    def rows(self, *, user: int, now: datetime) -> Any:
        """Return the escalations that match; none while a filter makes no sense."""
        if not self.is_valid():
            return Escalation.objects.none()
        given = self.cleaned_data
        wanted = views(user=user, now=now)[self.shown] & amounts(given)
        if given["kind"]:
            wanted &= Q(kind=given["kind"])
        if given["customer"]:
            wanted &= Q(subject__in=people.subjects_like(given["customer"]))
        if given["age"]:
            wanted &= Q(opened_at__lte=now - timedelta(minutes=int(given["age"])))
        return with_words(Escalation.objects.filter(wanted), given["q"])


def views(*, user: int, now: datetime) -> dict[str, Any]:
    """Return the condition of each view. A claim that ran out holds nobody off; what is snoozed is hidden until it is due."""
    held = Q(state="claimed", claimed_until__gt=now)
    awake = UNDECIDED & (Q(snoozed_until__isnull=True) | Q(snoozed_until__lte=now))
    return {
        "open": awake,
        "mine": awake & held & Q(claimed_by=user),
        "unclaimed": awake & ~held,
        "second": awake & Exists(signed()),
        "snoozed": UNDECIDED & Q(snoozed_until__gt=now),
        "waiting": Q(state="decided"),
        "done": Q(state__in=["resumed", "done"]),
        "expired": Q(state="expired"),
    }


def signed() -> Any:
    """Return the signatures under an escalation's newest revision: the others no longer count."""
    newer = Revision.objects.filter(escalation=OuterRef("escalation"), number__gt=OuterRef("revision__number"))
    return Signature.objects.filter(~Exists(newer), escalation=OuterRef("pk"))


def amounts(given: Mapping[str, Any]) -> Q:
    """Return the condition on amount and currency."""
    wanted = Q(currency=given["currency"]) if given["currency"] else Q()
    if given["amount_from"] is not None:
        wanted &= Q(amount_minor__gte=given["amount_from"])
    if given["amount_to"] is not None:
        wanted &= Q(amount_minor__lte=given["amount_to"])
    return wanted


def with_words(rows: Any, text: str) -> Any:
    """Return the rows about a customer, from a person, or with all the words, that the text names; "E-12" is exactly one."""
    if not text:
        return rows
    if text.upper().startswith("E-") and (number := numbered(text, "E-")) is not None:
        return rows.filter(id=number)
    spoken = RawSQL(
        "escalations_escalation.words @@ to_tsquery('pg_catalog.simple', %s)",
        (beginnings(text),),
        output_field=BooleanField(),
    )
    return rows.filter(Q(subject__in=people.subjects_like(text)) | Q(requested_by__in=people.ids_like(text)) | Q(spoken))


def beginnings(text: str) -> str:
    """Return a text-search query: each word of the text has to begin one."""
    words = [re.sub(r"['\\]", " ", word) for word in text.split()]
    return " & ".join(f"'{word}':*" for word in words if re.search(r"\w", word))
