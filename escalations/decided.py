"""The list of decisions: filters, and each decision as a line."""

from typing import Any

from django import forms
from django.db.models import Q

from escalations import questions
from escalations.models import Decision
from ledger import keysets, marks, people
from ledger.filters import numbered
from ledger.spans import instants

NEWEST = keysets.Order(keys=("id",))
SIZE = 50


class DecisionFilters(forms.Form):
    """What the decisions are narrowed by."""

    q = forms.CharField(required=False, max_length=200)
    decision = forms.ChoiceField(
        required=False, choices=[("", "any"), *((kind, mark.word) for kind, mark in marks.DECISIONS.items())]
    )
    kind = forms.ChoiceField(required=False, choices=[("", "any"), *((k, mark.word) for k, mark in questions.KINDS.items())])
    person = forms.CharField(required=False, max_length=150)
    customer = forms.CharField(required=False, max_length=100)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)

    @property
    def used(self) -> bool:
        """Return whether any filter is set."""
        return any(self.data.get(name) for name in self.fields)

    @property
    def used_more(self) -> bool:
        """Return whether a filter is set that the page folds away."""
        return any(self.data.get(name) for name in ("customer", "person", "since", "until"))

    def rows(self) -> Any:
        """Return the decisions that match; none while a filter makes no sense."""
        if not self.is_valid():
            return Decision.objects.none()
        given = self.cleaned_data
        wanted = instants("decided_at", since=given["since"], until=given["until"])
        if given["decision"]:
            wanted &= Q(kind=given["decision"])
        if given["kind"]:
            wanted &= Q(escalation__kind=given["kind"])
        if given["person"]:
            wanted &= Q(decided_by__in=people.ids_like(given["person"]))
        if given["customer"]:
            wanted &= Q(escalation__subject__in=people.subjects_like(given["customer"]))
        return Decision.objects.select_related("escalation").filter(wanted & words(given["q"]))


def words(text: str) -> Q:
    """Return the condition that the decision says this; "E-12" is the decision of that escalation."""
    if text.upper().startswith("E-") and (number := numbered(text, "E-")) is not None:
        return Q(escalation_id=number)
    return Q(text__icontains=text) if text else Q()


def lines(rows: list[Decision]) -> list[dict[str, Any]]:
    """Return the rows as lines of the table, names looked up for all of them at once."""
    names = people.names([*(row.decided_by for row in rows), *(row.requested_by for row in rows)])
    customers = people.subject_names(row.escalation.subject for row in rows)
    return [
        {
            "decision": row,
            "mark": marks.DECISIONS[row.kind],
            "kind": questions.KINDS[row.escalation.kind],
            "progress": marks.PROGRESS[row.escalation.state],
            "title": questions.title(row.escalation),
            "amount": questions.amount(row.escalation),
            "by": names.get(row.decided_by, "the system"),
            "asked_by": names.get(row.requested_by, ""),
            "customer": customers.get(row.escalation.subject, ""),
        }
        for row in rows
    ]
