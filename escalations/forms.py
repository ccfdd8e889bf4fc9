"""What a reviewer sends with a decision."""

from collections.abc import Mapping
from typing import Any

from django import forms

from escalations import facts, policies
from escalations.models import Decision

OTHER = "other"
REASONS = {
    "amount": "The amount is not supported by the records.",
    "target": "It acts on the wrong record.",
    "check": "It needs a check outside this system first.",
    OTHER: "Something else",
}
LONGEST = 2000
NOT_HERE = ("expire", "settle", "withdraw", *policies.EXITS)  # the system's, the asker's, the reconcile desk's


class DecisionForm(forms.Form):
    """A decision, its words, and for a signature the revision and the preview that were on the screen."""

    kind = forms.ChoiceField(choices=[choice for choice in Decision.Kind.choices if choice[0] not in NOT_HERE])
    reason = forms.ChoiceField(required=False, choices=list(REASONS.items()))
    text = forms.CharField(required=False, max_length=LONGEST, widget=forms.Textarea)
    revision = forms.IntegerField(required=False, min_value=0)
    preview = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)

    def clean(self) -> dict[str, Any]:
        """Join the chosen reason and the words; a rejection needs one of them, an answer needs words."""
        given: dict[str, Any] = super().clean() or {}
        kind = given.get("kind", "")
        words = words_of(given, kind=kind)
        if kind in policies.NEEDS_TEXT and not words:
            self.add_error("text", str(facts.TextMissing(decision=kind)))
        if kind in policies.SIGNED and not self.errors and None in (given.get("revision"), given.get("preview")):
            self.add_error("preview", "Reload the page: a signature says which proposal and which preview were shown.")
        return given | {"words": words}


def words_of(given: Mapping[str, Any], *, kind: str) -> str:
    """Return the words of a decision; those of a rejection begin with the reason that was chosen."""
    words = str(given.get("text") or "").strip()
    reason = given.get("reason") if kind == Decision.Kind.REJECT else ""
    chosen = REASONS[reason] if reason and reason != OTHER else ""
    return " ".join(part for part in (chosen, words) if part)
