"""Until when a question may be put off: spans that reviewers choose from, or a time of their own."""

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.utils import timezone

OWN = "own"
SPANS: Mapping[str, str] = {"15": "15 minutes", "60": "1 hour", "tomorrow": "Tomorrow 9:00"}
MORNING = time(9)


class SnoozeForm(forms.Form):
    """A span, or a time; `until` is in the installation's time zone."""

    span = forms.ChoiceField(choices=[*SPANS.items(), (OWN, "Own")])
    until = forms.DateTimeField(required=False, input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])

    def __init__(self, data: Any = None, *, now: datetime) -> None:
        super().__init__(data)
        self.now = now

    def clean(self) -> dict[str, Any]:
        """Fill in `until` from the span."""
        given: dict[str, Any] = super().clean() or {}
        span = given.get("span")
        if isinstance(span, str) and span in SPANS:
            self.errors.pop("until", None)
            return given | {"until": ends(span, now=self.now)}
        if span == OWN and not given.get("until") and "until" not in self.errors:
            self.add_error("until", "Choose a time.")
        return given


def ends(span: str, *, now: datetime) -> datetime:
    """Return when a span of SPANS is over."""
    if span == "tomorrow":
        day = timezone.localtime(now).date() + timedelta(days=1)
        return timezone.make_aware(datetime.combine(day, MORNING))
    return now + timedelta(minutes=int(span))
