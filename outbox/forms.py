"""What people type about messages: filters of the list, the reason of a request, how long a topic waits, how fast it goes."""

from typing import Any

from django import forms
from django.db.models import Q

from ledger import filters, people
from outbox import bulk, handlers, rates, sends_after
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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["topic"].choices = [("", "any"), *((handler.topic, handler.topic) for handler in handlers.every())]

    @property
    def used(self) -> bool:
        """Return whether any filter is set."""
        return any(self.data.get(name) for name in self.fields)

    @property
    def given(self) -> list[tuple[str, str]]:
        """Return the filters that are set, for a form that goes on from here."""
        return [(name, str(self.data[name])) for name in self.fields if self.data.get(name)]

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


class NumbersField(forms.Field):
    """The ids of messages: a field for each."""

    widget = forms.SelectMultiple

    def clean(self, value: Any) -> list[int]:
        """Return the ids, each once."""
        texts = [text for one in value or [] if (text := str(one).strip())]
        if not all(text.isascii() and text.isdigit() and len(text) <= 18 for text in texts):
            raise forms.ValidationError("There is no such message.")
        return sorted({int(text) for text in texts})


class SeveralForm(forms.Form):
    """What is asked of which messages: those named, or every one that the filters of the list leave."""

    kind = forms.ChoiceField(
        choices=[(kind, kind) for kind in bulk.KINDS],
        error_messages=dict.fromkeys(["required", "invalid_choice"], "Say what should be asked."),
    )
    message = NumbersField(required=False)
    every = forms.BooleanField(required=False)

    def clean(self) -> dict[str, Any]:
        """Return the checked fields; messages there must be, and not too many."""
        given: dict[str, Any] = super().clean() or {}
        if "message" not in given:
            return given
        if not given["message"] and not given.get("every"):
            raise forms.ValidationError({"message": "Select the messages first."})
        if len(given["message"]) > bulk.MOST:
            raise forms.ValidationError({"message": f"At most {bulk.MOST} messages at once."})
        return given


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


class RateForm(forms.Form):
    """How many messages may leave for a destination."""

    destination = forms.ChoiceField(error_messages=dict.fromkeys(["required", "invalid_choice"], "There is no such destination."))
    rate = forms.CharField(max_length=30, error_messages={"required": "Write how many messages a minute; 0 is no limit."})
    burst = forms.CharField(max_length=30, required=False)
    reason = forms.CharField(max_length=300, error_messages={"required": "Say why: it is kept with the rate."})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["destination"].choices = [(name, name) for name in handlers.destinations()]

    def clean_rate(self) -> int | None:
        """Return the messages a minute, or None for as many as there are."""
        text = str(self.cleaned_data["rate"])
        if not (text.isascii() and text.isdigit() and int(text) <= rates.FASTEST):
            raise forms.ValidationError(f"Write a whole number of messages a minute up to {rates.FASTEST:,}; 0 is no limit.")
        return int(text) or None

    def clean_burst(self) -> int:
        """Return how many may leave at once; without a rate that says nothing."""
        text = str(self.cleaned_data["burst"]) or "1"
        if "rate" in self.cleaned_data and self.cleaned_data["rate"] is None:
            return 1
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= rates.MOST_AT_ONCE):
            raise forms.ValidationError(f"Write how many may leave at once, from 1 to {rates.MOST_AT_ONCE:,}.")
        return int(text)
