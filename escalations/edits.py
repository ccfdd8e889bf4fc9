"""The forms in which a reviewer changes proposed calls: one for each call, made from the tool's schema."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from django import forms

from escalations import facts, fields
from ledger import sentences


class CallForm(forms.Form):
    """One call, as a person edits it. `arguments` are what the tool would get; who the customer is cannot be changed."""

    def __init__(self, data: Any = None, *, call: Mapping[str, Any]) -> None:
        self.index, self.tool = int(call["index"]), str(call["tool"])
        self.before: dict[str, Any] = dict(call["arguments"] or {})
        super().__init__(data, prefix=f"call-{self.index}", initial=self.before)
        known = sentences.tools().get(self.tool)
        self.schema: Mapping[str, Any] = known.arguments.model_json_schema() if known else {}
        self.fields = fields.of(self.schema, arguments=self.before)

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments after the edit. What was not touched stays as it was, left out or not."""
        kept = {name: value for name, value in self.before.items() if name not in self.fields}
        found = {name: self._argument(name) for name in self.fields}
        return kept | {name: value for name, value in found.items() if value is not None}

    def _argument(self, name: str) -> Any:
        value = self.cleaned_data.get(name)
        value = value.isoformat() if isinstance(value, date) else value
        default = self.schema["properties"][name].get("default")
        if name not in self.before and value in (default, None, ""):
            return None
        if value == "" and default is None and name not in self.schema.get("required", ()):
            return None
        return value

    def refuse(self, *, field: str, sentence: str) -> None:
        """Put a message of the tool's model under its field; amounts in it become readable."""
        found = self.fields.get(field)
        if isinstance(found, fields.MoneyField):
            currency = found.currency
            sentence = re.sub(r"\d+", lambda number: sentences.money(int(number[0]), currency), sentence)
        self.add_error(field if found else None, f"{sentence[:1].upper()}{sentence[1:]}".rstrip(".") + ".")


def of(proposal: Any, *, data: Any = None) -> dict[int, CallForm]:
    """Return the forms of a proposal's newest calls by index, filled with what was typed when there is `data`."""
    calls: Sequence[Mapping[str, Any]] = proposal.revision.calls if proposal.revision else ()
    return {call["index"]: CallForm(data, call=call) for call in calls}


def problems(edited: Mapping[int, CallForm]) -> list[str]:
    """Return what cannot be read of what was typed, each as a sentence that names its call; empty when all can."""
    return [sentence for form in edited.values() if not form.is_valid() for sentence in _said(form)]


def refused(edited: Mapping[int, CallForm], fact: facts.EditRefused) -> list[str]:
    """Put what the tools' own models say under its fields, and return the same as sentences."""
    for fault in fact.faults:
        if fault.call_index in edited:
            edited[fault.call_index].refuse(field=fault.field, sentence=fault.sentence)
    return [sentence for form in edited.values() for sentence in _said(form)] or [str(fact)]


def _said(form: CallForm) -> list[str]:
    labels = {name: f"{field.label}: " for name, field in form.fields.items()}
    return [f"Call {form.index + 1}: {labels.get(name, '')}{error}" for name, errors in form.errors.items() for error in errors]
