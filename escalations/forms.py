"""What a reviewer sends with a decision."""

from typing import Any

from django import forms

from escalations.models import Decision

OTHER = "other"
REASONS = {
    "amount": "The amount is not supported by the records.",
    "target": "It acts on the wrong record.",
    "check": "It needs a check outside this system first.",
    OTHER: "Something else",
}
LONGEST = 2000


class DecisionForm(forms.Form):
    """A decision, its words, and the revision that was on the screen."""

    kind = forms.ChoiceField(choices=[choice for choice in Decision.Kind.choices if choice[0] not in ("expire", "settle")])
    reason = forms.ChoiceField(required=False, choices=list(REASONS.items()))
    text = forms.CharField(required=False, max_length=LONGEST, widget=forms.Textarea)
    revision = forms.IntegerField(required=False, min_value=0)

    def clean(self) -> dict[str, Any]:
        """Join the chosen reason and the words; a rejection needs one of them, an answer needs words."""
        given: dict[str, Any] = super().clean() or {}
        kind, words = given.get("kind"), given.get("text", "")
        chosen = REASONS[given["reason"]] if given.get("reason") and given["reason"] != OTHER else ""
        if kind == Decision.Kind.REJECT:
            words = " ".join(part for part in (chosen, words) if part)
            if not words:
                self.add_error("text", "Give a reason: the agent and the staff member will read it.")
        if kind == Decision.Kind.APPROVE and "revision" not in self.errors and given.get("revision") is None:
            self.add_error("revision", "Reload the page: an approval says which proposal was shown.")
        if kind == Decision.Kind.ANSWER and not words:
            self.add_error("text", "Write the answer.")
        return given | {"words": words}
