"""What people type into the chat, checked before it becomes a row."""

import re
import uuid
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

LONGEST = 8000  # characters of a message
# Everything below a space but tab and line feed, DEL, and half characters: no column and no reader wants them.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
CARD = re.compile(r"(?<![\d])\d(?:[ -]?\d){12,18}(?![\d])")


def clean_text(text: str) -> str:
    """Return a message as it is kept; raise ValidationError with one sentence for what may not be sent."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if not text:
        raise ValidationError("Write something first.")
    if len(text) > LONGEST:
        raise ValidationError(f"A message may have {LONGEST:,} characters; this one has {len(text):,}.")
    if UNPRINTABLE.search(text):
        raise ValidationError("The message holds characters that cannot be printed. Paste it as plain text.")
    if any(_is_card_number(found.group()) for found in CARD.finditer(text)):
        raise ValidationError("That looks like a card number. Backstop may not keep one: write the last four digits only.")
    return text


def _is_card_number(text: str) -> bool:
    """Return whether the digits begin like a card's and pass its check digit (Luhn)."""
    digits = [int(character) for character in text if character.isdigit()]
    doubled = [sum(divmod(digit * 2, 10)) for digit in digits[-2::-2]]
    return digits[0] in (3, 4, 5, 6) and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


class TextField(forms.CharField):
    """The text of a message."""

    def __init__(self) -> None:
        super().__init__(strip=False, required=False)
        self.validators: list[Any] = []  # clean_text says it better

    def clean(self, value: object) -> str:
        """Return the checked text."""
        return clean_text(str(value or ""))


class MessageForm(forms.Form):
    """A new message. Its id is in the page: sent twice, it is still one message."""

    message = forms.UUIDField(required=False)  # not `id`: a form's own id would be out of a script's reach
    text = TextField()

    def clean_message(self) -> uuid.UUID:
        """Return the page's id, or a new one for a sender without."""
        found: uuid.UUID | None = self.cleaned_data["message"]
        return found or uuid.uuid4()


class QueuedForm(forms.Form):
    """Which waiting message is meant."""

    message = forms.UUIDField()


class EditForm(QueuedForm):
    """A waiting message's new text."""

    text = TextField()


class WithdrawForm(forms.Form):
    """Which request is taken back, and why; the reason may stay empty."""

    escalation = forms.IntegerField(
        min_value=1, max_value=2**63 - 1, error_messages=dict.fromkeys(["required", "invalid"], "That request does not exist.")
    )
    text = forms.CharField(required=False, strip=False)

    def clean_text(self) -> str:
        """Return the checked reason."""
        text = str(self.cleaned_data["text"])
        return clean_text(text) if text.strip() else ""


class UndoForm(forms.Form):
    """Which effect is taken back."""

    message = forms.IntegerField(min_value=1, max_value=2**63 - 1)


class StepForm(forms.Form):
    """Whom one steps in for; empty: for the agent."""

    instead_of = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)


class SubjectForm(forms.Form):
    """Whom a new conversation is about."""

    subject = forms.IntegerField(min_value=1, max_value=2**63 - 1)
