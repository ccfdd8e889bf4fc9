"""What a limit would have held, counted in a ledger that is written by hand."""

import itertools
import re
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.utils import timezone
from psycopg.types.json import Jsonb

from agent import backtests
from agent.amendments import Change
from tests.agent.batches import make_customer

Connection = psycopg.Connection[Any]
EXECUTION = """
INSERT INTO public.ledger_execution (thread, ai_message_id, call_index, generation, tool_call_id, tool, fingerprint, arguments,
    result, attempt_id, subject, on_behalf_of, model, prompt_version, committed_at)
VALUES (%(thread)s, %(step)s, %(index)s, 0, 'x', %(tool)s, '', %(arguments)s, %(result)s, %(attempt)s, %(subject)s, %(staff)s,
    'm', '1', %(at)s)
"""
ATTEMPT = """
INSERT INTO public.ledger_attempt (id, thread, ai_message_id, generation, subject, on_behalf_of, fence, calls, model,
    prompt_version, opened_at)
VALUES (%(attempt)s, %(thread)s, %(step)s, 0, %(subject)s, %(staff)s, 1, %(calls)s, 'm', '1', %(at)s)
"""
OUTCOME = """
INSERT INTO public.ledger_attempt_outcome (attempt_id, thread, ai_message_id, generation, outcome, calls, closed_at)
VALUES (%(attempt)s, %(thread)s, %(step)s, 0, %(outcome)s, %(calls)s, %(at)s)
"""
Calls = tuple[tuple[str, dict[str, Any]], ...]


def pay(minor: int, tool: str = "QueueRefund", currency: str = "EUR", **more: Any) -> tuple[str, dict[str, Any]]:
    return tool, {"customer_id": 1, "amount_minor": minor, "currency": currency, "invoice_id": 1, **more}


@dataclass
class Book:
    """A ledger to write steps into."""

    superuser: Connection
    web: Connection
    noon: datetime
    steps: Any = field(default_factory=lambda: itertools.count(1))

    def write(
        self,
        *calls: tuple[str, dict[str, Any]],
        ago: float = 24,
        outcome: str = "committed",
        dropped: tuple[int, ...] = (),
        **changes: Any,
    ) -> dict[str, Any]:
        """Write one step, so many hours before noon, and return what was written."""
        row: dict[str, Any] = {
            "thread": uuid.UUID(int=1), "step": f"step-{next(self.steps)}", "attempt": uuid.uuid4(), "subject": 1, "staff": 7,
            "at": self.noon - timedelta(hours=ago), "outcome": outcome,
        } | changes  # fmt: skip
        asked = [{"index": index, "id": "x", "tool": tool, "arguments": given} for index, (tool, given) in enumerate(calls)]
        asked = [call | ({"dropped": True} if call["index"] in dropped else {}) for call in asked]
        self.superuser.execute(ATTEMPT, row | {"calls": Jsonb(asked)})
        self.superuser.execute(OUTCOME, row | {"calls": None if outcome == "committed" else Jsonb(asked)})
        if outcome == "committed":
            for call in asked:
                given = {key: call[key] for key in ("index", "tool")} | {"arguments": Jsonb(call["arguments"])}
                self.superuser.execute(EXECUTION, row | given | {"result": Jsonb({"invoice_id": 1})})
        return row

    def holds(self, rule: str, value: int | None, *, tool: str = "", currency: str = "EUR") -> tuple[int, int, int]:
        """Return how many steps the limit would have held, of how many, and how many the present one would have."""
        found = self.answer(rule, value, tool=tool, currency=currency)
        return found.held, found.steps, found.held_now

    def answer(self, rule: str, value: int | None, *, tool: str = "", currency: str = "EUR") -> backtests.Answer:
        with self.web.transaction():
            return backtests.answer(self.web, change=Change(rule=rule, tool=tool, currency=currency, value=value))


@pytest.fixture
def book(owner: Connection, superuser: Connection, web: Connection) -> Book:
    make_customer(owner)
    noon = timezone.localtime().replace(hour=12, minute=0, second=0, microsecond=0)
    return Book(superuser=superuser, web=web, noon=noon)


@pytest.mark.parametrize(
    ("value", "held"), [(0, 4), (20_000, 3), (25_000, 2), (30_000, 1), (32_000, 0), (None, 0)]
)  # fmt: skip
def test_it_counts_steps_above_an_amount(book: Book, value: int | None, held: int) -> None:
    book.write(pay(20_000), pay(100))
    book.write(pay(25_000))
    book.write(pay(30_000), pay(29_000))
    book.write(pay(32_000), outcome="held")
    book.write(pay(90_000, tool="CreateInvoice"))
    book.write(pay(90_000, currency="JPY"))
    book.write(pay(90_000), ago=24 * 32)
    assert book.holds("per_call", value, tool="QueueRefund") == (held, 4, 2)
    assert book.holds("second_reviewer", value, tool="QueueRefund") == (held, 4, 0)


def test_every_currency_is_every_one_without_a_number_of_its_own(book: Book) -> None:
    book.write(pay(100, currency="EUR"))
    book.write(pay(100, currency="JPY"))
    assert book.holds("per_call", 99, tool="QueueRefund", currency="") == (2, 2, 0)
    book.web.execute(
        "INSERT INTO public.agent_policy (rule, tool, currency, value, previous, reason, set_by)"
        " VALUES ('per_call', 'QueueRefund', 'JPY', 50, 25000, 'x', 1)"
    )
    assert book.holds("per_call", 99, tool="QueueRefund", currency="") == (1, 1, 0)
    assert book.holds("per_call", 99, tool="QueueRefund", currency="JPY") == (1, 1, 1)


def test_a_step_that_was_held_and_then_ran_is_one(book: Book) -> None:
    held = book.write(pay(30_000), outcome="held")
    book.write(pay(30_000), thread=held["thread"], step=held["step"])
    book.write(pay(30_000), outcome="rolled_back")
    book.write(pay(30_000), outcome="refused")
    assert book.holds("per_call", 100, tool="QueueRefund") == (1, 1, 1)


def test_a_step_that_was_held_and_rejected_is_one(book: Book) -> None:
    held = book.write(pay(30_000), outcome="held")
    book.write(pay(30_000), outcome="rejected", step=held["step"], ago=23)
    assert book.holds("per_call", 100, tool="QueueRefund") == (1, 1, 1)


def test_a_call_that_a_person_dropped_counts_for_nothing(book: Book) -> None:
    book.write(pay(30_000), pay(100), outcome="held", dropped=(0,))
    book.write(pay(30_000), outcome="rejected", dropped=(0,))
    assert book.holds("per_call", 200, tool="QueueRefund") == (0, 1, 0)


OTHER = uuid.UUID(int=2)
WINDOWS = [
    ("customer_day", 1000, (1, 5)),  # the third of the first customer's day
    ("customer_day", 400, (5, 5)),
    ("staff_day", 1499, (1, 5)),
    ("conversation", 1600, (1, 5)),
    ("conversation", 2500, (0, 5)),
]


@pytest.mark.parametrize(("rule", "value", "held"), WINDOWS)
def test_it_adds_up_as_the_limits_do(book: Book, rule: str, value: int, held: tuple[int, int]) -> None:
    book.write(pay(250), pay(250, tool="ApplyCredit"), ago=28)
    book.write(pay(500), ago=27)
    book.write(pay(500), ago=26)
    book.write(pay(500), ago=25, subject=2, thread=OTHER, staff=8)
    book.write(pay(500), ago=1)
    book.write(("VoidInvoice", {"customer_id": 1, "invoice_id": 1}), ago=1)
    assert book.holds(rule, value) == (*held, 0)


def test_a_sum_takes_in_what_has_a_limit_only(book: Book) -> None:
    book.write(pay(500, tool="LookUpCustomer"))
    assert book.holds("customer_day", 0) == (0, 0, 0)


REPEATS = [(1, (1, 6, 4)), (3, (3, 6, 4)), (24, (4, 6, 4)), (720, (5, 6, 4)), (None, (0, 6, 4))]


@pytest.mark.parametrize(("hours", "held"), REPEATS)
def test_it_counts_the_same_again(book: Book, hours: int | None, held: tuple[int, int, int]) -> None:
    threads = (uuid.UUID(int=number) for number in itertools.count(10))
    for ago in (100, 50, 48, 46, 30):  # +50, +2, +2, +16 hours
        book.write(pay(500), ago=ago, thread=next(threads))
    book.write(pay(7), pay(7, reason="again"), ago=20, thread=next(threads))
    book.write(pay(500, invoice_id=2), outcome="refused", ago=20)
    book.write(pay(500), subject=2, ago=30, outcome="refused")
    assert book.holds("same_effect", hours, tool="QueueRefund", currency="") == held


def test_in_one_conversation_the_same_is_the_same_however_long_ago(book: Book) -> None:
    book.write(pay(500), ago=200)
    book.write(pay(500), ago=20)
    assert book.holds("same_effect", 1, tool="QueueRefund", currency="") == (1, 2, 1)


def test_the_first_uses_are_those_of_all_time(book: Book) -> None:
    for ago in (24 * 40, 30, 20, 10):
        book.write(pay(500), ago=ago)
    book.write(pay(500, tool="ApplyCredit"))
    assert book.holds("first_use", 1, tool="QueueRefund", currency="") == (0, 3, 0)
    assert book.holds("first_use", 3, tool="QueueRefund", currency="") == (2, 3, 0)


def test_it_names_the_newest_ten(book: Book) -> None:
    rows = [book.write(pay(1000 + number), ago=number) for number in range(12)]
    found = book.answer("per_call", 999, tool="QueueRefund")
    assert [one.attempt for one in found.examples] == [row["attempt"] for row in rows[:10]]
    assert (found.examples[0].subject, found.examples[0].measured, found.examples[0].currency) == ("Example", 1000, "EUR")
    assert found.words == "This limit would have held 12 of 12 steps with QueueRefund in 30 days; the present one 0."


def test_it_says_that_there_was_nothing(book: Book) -> None:
    assert book.answer("per_call", 1, tool="QueueRefund").words == "There was no step with QueueRefund in the last 30 days."


def test_it_gives_up_in_time(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backtests, "STEPS", ", steps AS (SELECT pg_sleep(60)) SELECT * FROM steps")
    monkeypatch.setattr(backtests, "SECONDS", 0.05)
    with pytest.raises(backtests.TooLong):
        book.answer("per_call", 1, tool="QueueRefund")


def test_the_page_answers_before_anything_is_set(book: Book, as_role: Any) -> None:
    row = book.write(pay(1000))
    asked = {"try": "1", "tool": "QueueRefund", "currency": "EUR", "value": "9.99"}
    page = as_role("admin").get("/limits/per_call/", asked)
    said = page.content.decode()
    assert "This limit would have held 1 of 1 step with QueueRefund in 30 days; the present one 0." in said
    assert f"/audit/attempts/{row['attempt']}/" in said
    assert re.search(r"€10\.00", said)
    assert 'value="9.99"' in said
    assert as_role("admin").get("/limits/per_call/", asked | {"value": "x"}).status_code == 422
