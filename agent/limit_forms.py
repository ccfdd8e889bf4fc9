"""What admins type on the pages of the limits, checked before it becomes a row."""

import re
from collections.abc import Sequence
from typing import Any

from django import forms

from agent.amendments import Change
from agent.numbers import Rule
from ledger import wiring

WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)
CODE = re.compile(r"[A-Z]{3}", re.ASCII)


class ReasonField(forms.CharField):
    """Why something is set; shown to others."""

    def __init__(self, missing: str, *, required: bool = True) -> None:
        super().__init__(max_length=300, required=required, error_messages={"required": missing})


class SwitchForm(forms.Form):
    """Pausing all writes, or one tool's; or asking that they go on."""

    tool = forms.ChoiceField(required=False, error_messages={"invalid_choice": "There is no such tool."})
    paused = forms.TypedChoiceField(choices=[("1", "Pause"), ("0", "Go on")], coerce=lambda text: text == "1")
    reason = ReasonField("Say why: it is shown to everybody.")

    def __init__(self, *args: Any, tools: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tool"].choices = [("", "All writes"), *((name, name) for name in tools)]

    def change(self) -> Change:
        """Return what is to count."""
        return Change(rule="kill_switch", tool=self.cleaned_data["tool"], value=int(self.cleaned_data["paused"]))


class AnswerForm(forms.Form):
    """What an admin says to a change that was asked for."""

    answer = forms.ChoiceField(choices=[("confirmed", "Confirm"), ("refused", "Refuse"), ("withdrawn", "Withdraw")])


class NumberForm(forms.Form):
    """One number of a rule. Left out is not off: that has a box of its own."""

    tool = forms.ChoiceField(required=False, error_messages={"invalid_choice": "This tool has no such limit."})
    currency = forms.ChoiceField(required=False, error_messages={"invalid_choice": "No customer has this currency."})
    value = forms.CharField(required=False, max_length=30)
    off = forms.BooleanField(required=False)
    reason = ReasonField("Say why: it is kept with the limit.")

    def __init__(self, *args: Any, rule: Rule, currencies: Sequence[str], trying: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rule = rule
        self.fields["tool"].choices = [(tool.name, tool.name) for tool in rule.tools()] if rule.by_tool else []
        self.fields["tool"].required = rule.by_tool
        self.fields["currency"].choices = [("", "Every currency"), *((code, code) for code in currencies if rule.by_currency)]
        self.fields["reason"].required = not trying

    def clean(self) -> dict[str, Any]:
        """Return the checked fields with `number`: minor units, hours or uses; None for off."""
        given: dict[str, Any] = super().clean() or {}
        text = str(given.get("value") or "").strip()
        if "currency" not in given or "value" not in given:
            return given
        if bool(text) == bool(given.get("off")):
            raise forms.ValidationError({"value": "Write a number, or tick “Off”: one of the two."})
        given["number"] = self._number(text, currency=given["currency"]) if text else None
        return given

    def change(self) -> Change:
        """Return what is to count."""
        given = self.cleaned_data
        return Change(rule=self.rule.name, tool=given["tool"], currency=given["currency"], value=given["number"])

    def _number(self, text: str, *, currency: str) -> int:
        number = self._amount(text, currency) if self.rule.unit == "money" and currency else self._whole(text)
        least = 1 if self.rule.less_is_looser else 0
        if not least <= number <= self.rule.largest:
            raise forms.ValidationError({"value": self._bounds(least, currency)})
        return number

    def _bounds(self, least: int, currency: str) -> str:
        if self.rule.unit == "money" and currency:
            return f"It is between {self.rule.words(least, currency)} and {self.rule.words(self.rule.largest, currency)}."
        unit = "minor units" if self.rule.unit == "money" else self.rule.unit
        return f"It is between {least} and {self.rule.largest:,} {unit}."

    def _amount(self, text: str, currency: str) -> int:
        try:
            return int(wiring.plugged("BACKSTOP_MONEY_PARSE")(text, currency))
        except ValueError as error:
            raise forms.ValidationError({"value": str(error)}) from error

    def _whole(self, text: str) -> int:
        """Return a whole number: "250.00" is not taken for 250, which in minor units is €2.50."""
        if WHOLE.fullmatch(text):
            return int(text)
        if self.rule.unit == "money":
            said = "For every currency write minor units as a whole number: 25000 is €250.00, and ¥25,000. Or choose a currency."
            raise forms.ValidationError({"value": said})
        raise forms.ValidationError({"value": f"Write a whole number of {self.rule.unit}."})
