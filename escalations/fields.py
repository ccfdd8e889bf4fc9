"""The fields of a tool's arguments as a person edits them, made from the tool's schema. What is right is for its model to say."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms

from ledger import diffs, sentences, wiring

NEVER = frozenset({"customer_id"})  # a conversation is about one customer
SHORT = 120  # characters that fit into one line
CURRENCY = re.compile(r"[A-Z]{3}")
Schema = Mapping[str, Any]


class MoneyField(forms.CharField):
    """An amount as people write it; its value is in minor units of its currency."""

    def __init__(self, *, currency: str, bounds: Schema, **options: Any) -> None:
        super().__init__(help_text=_between(bounds, currency), **options)
        self.currency = currency
        self.widget.attrs |= {"inputmode": "decimal", "autocomplete": "off", "class": "num"}

    def prepare_value(self, value: Any) -> Any:
        """Return the number without its currency, which stands beside the field."""
        return _number(sentences.money(value, self.currency)) if isinstance(value, int) else value

    def clean(self, value: Any) -> int | None:
        """Return minor units; raise ValidationError with a sentence that shows how the amount is written."""
        text = super().clean(value)
        if not text:
            return None
        try:
            return int(wiring.plugged("BACKSTOP_MONEY_PARSE")(text, self.currency))
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error


def of(schema: Schema, *, arguments: Mapping[str, Any]) -> dict[str, forms.Field]:
    """Return a field for each argument of a tool that a person may change, in the order of its schema."""
    currency = str(arguments.get("currency", ""))
    required = schema.get("required", ())
    found = {}
    for name, described in schema.get("properties", {}).items():
        if name not in NEVER:
            found[name] = _field(name, _plain(described, schema), required=name in required, currency=currency)
            found[name].label = diffs.label(name)
            found[name].help_text = found[name].help_text or _for_people(described.get("description", ""), schema)
    return found


def _for_people(text: str, schema: Schema) -> str:
    """Return what the model reads about an argument with the fields called as people see them."""
    for name in schema.get("properties", {}):
        text = re.sub(rf"\b{re.escape(name)}\b", f"“{diffs.label(name)}”", text) if "_" in name else text
    return text


def _field(name: str, described: Schema, *, required: bool, currency: str) -> forms.Field:
    kind = described.get("type")
    if "const" in described or "enum" in described:
        choices = [(choice, str(choice)) for choice in described.get("enum", [described.get("const")])]
        return forms.ChoiceField(required=required, choices=choices if required else [("", "—"), *choices])
    if kind == "integer" and name.endswith("_minor") and CURRENCY.fullmatch(currency):
        return MoneyField(required=required, currency=currency, bounds=described)
    if kind == "integer":
        attrs = {side: described[key] for side, key in (("min", "minimum"), ("max", "maximum")) if key in described}
        return forms.IntegerField(required=required, widget=forms.NumberInput(attrs=attrs))
    if kind == "boolean":
        return forms.BooleanField(required=False)
    if described.get("format") == "date":
        return forms.DateField(required=required, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"))
    # Nobody changes what money an amount is in: it follows the customer's. One that is no code may be put right.
    fixed = name == "currency" and bool(CURRENCY.fullmatch(currency))
    return forms.CharField(required=required, disabled=fixed, widget=_text(described))


def _text(described: Schema) -> forms.Widget:
    attrs = {key: described[part] for key, part in (("maxlength", "maxLength"), ("minlength", "minLength")) if part in described}
    return forms.Textarea(attrs=attrs | {"rows": 2}) if described.get("maxLength", 0) > SHORT else forms.TextInput(attrs=attrs)


def _plain(described: Schema, schema: Schema) -> Schema:
    """Return what an argument is when it is given: of "this or nothing", this; of a reference, what it refers to."""
    given = next((part for part in described.get("anyOf", ()) if part.get("type") != "null"), described)
    named = str(given.get("$ref", "")).rpartition("/")[2]
    return dict(schema.get("$defs", {}).get(named, given)) if named else given


def _between(bounds: Schema, currency: str) -> str:
    """Return the bounds of an amount in words."""
    most = bounds.get("maximum")
    return f"At most {sentences.money(most, currency)}." if isinstance(most, int) else ""


def _number(amount: str) -> str:
    return re.sub(r"[^0-9.,-]", "", amount)
