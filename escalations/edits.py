"""Editing a proposal: the forms of its calls as the page shows them, and what was wrong with what was typed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms

from escalations import facts, fields
from escalations.call_forms import CallForm
from ledger import calls as words
from ledger import diffs

LONG = 40  # characters from which a text gets a line of its own


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One field on the page."""

    key: str
    label: str
    kind: str  # amount, number, date, choice, text or long
    value: str
    hint: str
    most: int | None = None  # characters
    choices: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Edit:
    """One call as it is edited: what can be typed, what stays, and what is wrong with it."""

    def __init__(self, data: Any = None, *, call: Mapping[str, Any]) -> None:
        self.form = CallForm(data, call=call)

    @property
    def arguments(self) -> dict[str, Any]:
        """Return what the tool would get."""
        return self.form.arguments

    @property
    def fields(self) -> list[Shown]:
        """Return what can be typed."""
        return [_shown(self.form[name]) for name, one in self.form.fields.items() if not one.disabled]

    @property
    def fixed(self) -> list[tuple[str, str]]:
        """Return what stays as it is: label and value."""
        stays = fields.NEVER | {name for name, one in self.form.fields.items() if one.disabled}
        return [(diffs.label(name), words.value(name, self.form.before)) for name in self.form.before if name in stays]

    @property
    def errors(self) -> list[str]:
        """Return what is wrong with the call as a whole."""
        return [str(error) for error in self.form.non_field_errors()]


def of(proposal: Any, *, data: Any = None) -> dict[int, Edit]:
    """Return the forms of a proposal's newest calls by index, filled with what was typed when there is `data`."""
    calls: Sequence[Mapping[str, Any]] = proposal.revision.calls if proposal.revision else ()
    return {call["index"]: Edit(data, call=call) for call in calls}


def problems(edited: Mapping[int, Edit]) -> list[str]:
    """Return what cannot be read of what was typed, each as a sentence that names its call; empty when all can."""
    return [sentence for edit in edited.values() if not edit.form.is_valid() for sentence in _said(edit.form)]


def refused(edited: Mapping[int, Edit], fact: facts.EditRefused) -> list[str]:
    """Put what the tools' own models say under its fields, and return the same as sentences."""
    for fault in fact.faults:
        if fault.call_index in edited:
            edited[fault.call_index].form.refuse(field=fault.field, sentence=fault.sentence)
    return [sentence for edit in edited.values() for sentence in _said(edit.form)] or [str(fact)]


def _said(form: CallForm) -> list[str]:
    labels = {name: f"{field.label}: " for name, field in form.fields.items()}
    return [f"Call {form.index + 1}: {labels.get(name, '')}{error}" for name, errors in form.errors.items() for error in errors]


def _shown(bound: forms.BoundField) -> Shown:
    most = bound.field.widget.attrs.get("maxlength")
    value = bound.value()
    return Shown(
        key=bound.html_name,
        label=str(bound.label),
        kind=_kind(bound.field),
        value="" if value is None else str(value),
        hint=str(bound.help_text),
        most=int(most) if most else None,
        choices=[str(choice) for choice, _ in bound.field.choices] if isinstance(bound.field, forms.ChoiceField) else [],
        errors=[str(error) for error in bound.errors],
    )


def _kind(one: forms.Field) -> str:
    kinds = (
        (fields.MoneyField, "amount"),
        (forms.IntegerField, "number"),
        (forms.DateField, "date"),
        (forms.ChoiceField, "choice"),
    )
    found = next((name for kind, name in kinds if isinstance(one, kind)), "text")
    return "long" if found == "text" and int(one.widget.attrs.get("maxlength") or 0) > LONG else found
