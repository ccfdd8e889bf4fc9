"""The filters of the audit pages: a form each, and the rows it leaves."""

from typing import Any
from uuid import UUID

from django import forms
from django.db.models import Exists, OuterRef, Q, TextField
from django.db.models.functions import Cast

from ledger import links, marks, people, sentences
from ledger.models import Attempt, AttemptOutcome, Execution
from ledger.spans import instants

SEARCHED = 10_000  # the newest rows in which words are looked for: a search costs the same however long the trail is
Rows = Any  # a QuerySet of whichever model


def numbered(text: str, prefix: str) -> int | None:
    """Return the number of "C-12" or "12"; None when it is neither."""
    digits = text.upper().removeprefix(prefix)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else None


def as_uuid(text: str) -> UUID | None:
    """Return the UUID that the text is, or None."""
    try:
        return UUID(text)
    except ValueError:
        return None


class Trail(forms.Form):
    """What executions and attempts are both filtered by."""

    q = forms.CharField(required=False, max_length=200)
    tool = forms.ChoiceField(required=False)
    customer = forms.CharField(required=False, max_length=100)
    conversation = forms.CharField(required=False, max_length=40)
    person = forms.CharField(required=False, max_length=150)
    since = forms.DateField(required=False)
    until = forms.DateField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tool"].choices = [("", "any"), *((name, name) for name in sentences.tools())]

    @property
    def used(self) -> bool:
        """Return whether any filter is set."""
        return any(self.data.get(name) for name in self.fields)

    @property
    def used_more(self) -> bool:
        """Return whether a filter is set that the page folds away."""
        return any(self.data.get(name) for name in ("customer", "conversation", "person", "since", "until"))

    def clean_conversation(self) -> UUID | None:
        """Return the thread of "C-12", of 12, or of a thread's own id."""
        text = self.cleaned_data["conversation"]
        if not text:
            return None
        number = numbered(text, "C-")
        thread = as_uuid(text) if number is None else links.thread_of(number)
        if thread is None:
            raise forms.ValidationError("There is no such conversation.")
        return thread

    def whose(self) -> Q:
        """Return the condition on customer, conversation and person."""
        given, wanted = self.cleaned_data, Q()
        if given["customer"]:
            wanted &= Q(subject__in=people.subjects_like(given["customer"]))
        if given["conversation"]:
            wanted &= Q(thread=given["conversation"])
        if given["person"]:
            wanted &= Q(on_behalf_of__in=people.ids_like(given["person"]))
        return wanted

    def when(self, column: str) -> Q:
        """Return the condition on the time: whole days in the installation's zone, both included."""
        return instants(column, since=self.cleaned_data["since"], until=self.cleaned_data["until"])


class ExecutionFilters(Trail):
    """Filters of applied calls. Look-ups are the many that changed nothing: they are left out unless asked for."""

    does = forms.ChoiceField(required=False, choices=[("", "writes"), ("read", "reads"), ("all", "all")])

    def rows(self) -> Rows:
        """Return the executions that match; none while a filter makes no sense."""
        if not self.is_valid():
            return Execution.objects.none()
        found = Execution.objects.filter(self.whose(), self.when("committed_at"))
        text = self.cleaned_data["q"]
        if uid := as_uuid(text):
            return found.filter(Q(attempt_id=uid) | Q(thread=uid))
        found = found.filter(self._deeds())
        return with_words(found, text, column="committed_at", words=("tool_call_id", "ai_message_id", "arguments", "result"))

    def _deeds(self) -> Q:
        """Return the condition on what the calls do; who names a tool gets it, whatever it does."""
        if tool := self.cleaned_data["tool"]:
            return Q(tool=tool)
        idle = {name: sentences.does(name) for name in sentences.tools() if sentences.does(name) != "write"}
        if self.cleaned_data["does"] == "read":
            return Q(tool__in=[name for name, does in idle.items() if does == "read"])
        return Q() if self.cleaned_data["does"] == "all" else ~Q(tool__in=list(idle))


class AttemptFilters(Trail):
    """Filters of attempts, whatever became of them."""

    outcome = forms.ChoiceField(
        required=False,
        choices=[("", "any"), *((name, mark.word) for name, mark in marks.ATTEMPTS.items()), ("open", marks.LEFT_OPEN.word)],
    )
    sqlstate = forms.RegexField(r"^[0-9A-Z]{5}$", required=False, strip=True)

    def by_outcome(self) -> bool:
        """Return whether the rows are outcomes: only they know how an attempt ended."""
        return self.cleaned_data["outcome"] not in ("", "open") or bool(self.cleaned_data["sqlstate"])

    def rows(self) -> Rows:
        """Return the attempts, or when asked by outcome the outcomes, that match; none while a filter makes no sense."""
        if not self.is_valid():
            return Attempt.objects.none()
        return self._outcomes() if self.by_outcome() else self._attempts()

    def _attempts(self) -> Rows:
        found = Attempt.objects.filter(self._started(), self.when("opened_at"))
        if self.cleaned_data["outcome"] == "open":
            found = found.filter(~Exists(AttemptOutcome.objects.filter(attempt_id=OuterRef("id"))))
        text = self.cleaned_data["q"]
        if uid := as_uuid(text):
            return found.filter(Q(id=uid) | Q(thread=uid))
        return with_words(found, text, column="opened_at", words=("ai_message_id", "calls"))

    def _outcomes(self) -> Rows:
        given = self.cleaned_data
        found = AttemptOutcome.objects.filter(self.when("closed_at"))
        if given["outcome"]:
            found = found.filter(outcome=given["outcome"])
        if given["sqlstate"]:
            found = found.filter(sqlstate=given["sqlstate"])
        if started := self._started():
            found = found.filter(Exists(Attempt.objects.filter(started, id=OuterRef("attempt_id"))))
        text = given["q"]
        if uid := as_uuid(text):
            return found.filter(Q(attempt_id=uid) | Q(thread=uid))
        words = ("ai_message_id", "calls", "detail", "constraint_name", "failed_statement", "told")
        return with_words(found, text, column="closed_at", words=words)

    def _started(self) -> Q:
        tool = self.cleaned_data["tool"]
        return self.whose() & (Q(calls__contains=[{"tool": tool}]) if tool else Q())


def with_words(rows: Rows, text: str, *, column: str, words: tuple[str, ...]) -> Rows:
    """Return the rows of the newest `SEARCHED` that hold the text in one of the columns."""
    if not text:
        return rows
    recent, wanted = newest(rows, column=column), Q()
    for name in words:
        recent = recent.alias(**{f"{name}_text": Cast(name, TextField())})
        wanted |= Q(**{f"{name}_text__icontains": text})
    return recent.filter(wanted)


def newest(rows: Rows, *, column: str) -> Rows:
    """Return the newest `SEARCHED` of the rows."""
    oldest = rows.order_by(f"-{column}").values_list(column, flat=True)[SEARCHED - 1 : SEARCHED].first()
    return rows.filter(**{f"{column}__gte": oldest}) if oldest else rows
