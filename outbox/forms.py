"""What people type about messages: filters of the list, the reason of a request, how long a topic waits."""

from typing import Any

from django import forms
from django.db.models import Q

from ledger import filters, people
from outbox import sends_after
from outbox.models import Message

STATES = {
    Message.State.READY: "Queued",
    Message.State.LEASED: "Being sent",
    Message.State.ACCEPTED: "Sent, not final",
    Message.State.UNCERTAIN: "Uncertain",
    Message.State.SUCCEEDED: "Confirmed",
    Message.State.REJECTED: "Refused",
    Message.State.DEAD: "Needs a person",
    Message.State.CANCELLED: "Withdrawn",
}


class MessageFilters(forms.Form):
    """What the messages are narrowed by."""

    q = forms.CharField(required=False, max_length=200)
    state = forms.ChoiceField(required=False, choices=[("", "any"), *((str(state), word) for state, word in STATES.items())])
    topic = forms.ChoiceField(required=False)
    customer = forms.CharField(required=False, max_length=100)

    def __init__(self, *args: Any, topics: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["topic"].choices = [("", "any"), *((topic, topic) for topic in topics)]

    @property
    def used(self) -> bool:
        """Return whether any filter is set."""
        return any(self.data.get(name) for name in self.fields)

    def rows(self) -> Any:
        """Return the messages that match; none while a filter makes no sense."""
        if not self.is_valid():
            return Message.objects.none()
        given, wanted = self.cleaned_data, Q()
        for name in ("state", "topic"):
            if given[name]:
                wanted &= Q(**{name: given[name]})
        if given["customer"]:
            wanted &= Q(subject__in=people.subjects_like(given["customer"]))
        return self._with_words(Message.objects.filter(wanted), given["q"])

    def _with_words(self, rows: Any, text: str) -> Any:
        """Return the rows of an id, ours or the provider's; else those of the newest that hold the words."""
        if (number := filters.numbered(text, "M-")) is not None:
            return rows.filter(id=number)
        if uid := filters.as_uuid(text):
            return rows.filter(Q(uid=uid) | Q(thread=uid))
        words = ("aggregate", "dedupe_key", "provider_id", "provider_status", "refusal", "last_error")
        return filters.with_words(rows, text, column="id", words=words)


class RequestForm(forms.Form):
    """Why a person asks something of a message."""

    reason = forms.CharField(
        max_length=500, strip=True, error_messages={"required": "Say why: the reason is kept with the message."}
    )


class PauseForm(forms.Form):
    """How long the messages of a topic wait, so that they can be taken back."""

    topic = forms.ChoiceField(error_messages=dict.fromkeys(["required", "invalid_choice"], "There is no such topic."))
    seconds = forms.CharField(max_length=30, error_messages={"required": "Write how many seconds; 0 is off."})
    reason = forms.CharField(max_length=300, error_messages={"required": "Say why: it is kept with the time."})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["topic"].choices = [(topic, topic) for topic in sends_after.topics()]

    def clean_seconds(self) -> int:
        """Return the seconds."""
        text = str(self.cleaned_data["seconds"])
        if not (text.isascii() and text.isdigit() and int(text) <= sends_after.LONGEST):
            raise forms.ValidationError(f"Write a whole number of seconds from 0 to {sends_after.LONGEST:,}; 0 is off.")
        return int(text)
