"""The form in which a person changes one proposed call, made from the tool's schema."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from django import forms

from escalations import fields
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
