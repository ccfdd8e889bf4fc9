"""The conversations that the cases are about: who says what about which month, and the next thing that is said."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import psycopg

from sandbox.demo import books as demo_books
from sandbox.demo.cast import DemoCustomer, DemoInvoice
from sandbox.demo.provider import Provider
from tests.matrix.cases import Way
from tests.matrix.people import Person
from tests.stack import Stack
from tests.waiting import until

# What the currencies of its customers are written with. Each conversation is about a customer of its own, as one that stands
# still in a batch keeps every other of its customer waiting; each has an invoice of last month and some credit.
CURRENCIES = (("EUR", "€"), ("GBP", "£"))
TEXT = (
    "Issue a credit memo of {sign}0.10 for {before} because of the outage."
    " Invoice {month} for {sign}{amount}, use {sign}0.10 of their credit and charge the rest."
)
TOOLS = ("IssueCreditMemo", "CreateInvoice", "ApplyCredit", "QueueCharge")  # one batch
CREDIT = 10  # minor units
SMALL, LARGE = 1250, 600_000  # minor units: run at once, held for a person
FIRST_YEAR = 2031
LONG = 90  # seconds
WAITS = """
SELECT e.id, p.id, p.outcome FROM public.escalations_escalation e JOIN public.agent_thread t USING (thread)
JOIN public.escalations_revision r ON r.escalation_id = e.id JOIN public.escalations_preview p ON p.revision_id = r.id
WHERE thread = %s AND e.kind = 'approval' AND e.state IN ('open', 'claimed') AND t.state = 'waiting'
ORDER BY p.id DESC LIMIT 1
"""
PAID = """
SELECT m.id FROM public.outbox_message m JOIN public.agent_thread t USING (thread)
WHERE thread = %s AND m.state = 'succeeded' AND t.state = 'idle'
"""


@dataclass(kw_only=True)
class Talk:
    """One conversation about one month of one customer."""

    way: Way
    number: int
    thread: UUID
    customer: int
    month: date
    text: str
    amount: int  # minor units that are charged
    message: str = field(default_factory=lambda: str(uuid4()))


class Desk:
    """The people of an instance and its books: begins conversations and says what comes next in them."""

    def __init__(
        self, stack: Stack, books: "psycopg.Connection[Any]", *, support: Person, reviewer: Person, admin: Person
    ) -> None:
        self.stack, self.books, self.support, self.reviewer, self.admin = stack, books, support, reviewer, admin
        self._begun = 0

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return what the books say."""
        return self.books.execute(query, values).fetchall()

    def begin(self, way: Way) -> Talk:
        """Begin a conversation; one that is to be approved is brought to its question later."""
        currency, sign = CURRENCIES[self._begun % len(CURRENCIES)]
        customer, before = self._customer(currency)
        month = date(FIRST_YEAR + self._begun // 12, 1 + self._begun % 12, 1)
        total = (SMALL if way in ("said", "asked") else LARGE) + self._begun
        self._begun += 1
        number = self.support.begin(customer)
        ((thread,),) = self.rows("SELECT thread FROM public.agent_conversation WHERE id = %s", number)
        text = TEXT.format(sign=sign, before=before, month=month.strftime("%B %Y"), amount=f"{total / 100:.2f}")
        return Talk(way=way, number=number, thread=thread, customer=customer, month=month, text=text, amount=total - CREDIT)

    def _customer(self, currency: str) -> tuple[int, str]:
        """Make a customer with a card, and return the id and the name of the month that has an invoice."""
        earlier, today = DemoInvoice(months_ago=1, amount_minor=10_000, description="Seats", paid=False), date.today()
        email = f"{uuid4().hex}@matrix.test"
        who = DemoCustomer(name="Kill Minus Nine Ltd", email=email, currency=currency, credit_minor=1000, invoices=(earlier,))
        with self.stack.connect("owner") as conn:
            demo_books.make(conn, who=who, provider=Provider.of_instance(self.stack.data), today=today)
        ((customer,),) = self.rows("SELECT id FROM public.billing_customer WHERE email = %s", email)
        return customer, earlier.billing_period(today).strftime("%B")

    def say(self, talk: Talk) -> None:
        """Send the one message of a conversation."""
        self.support.say(talk.number, talk.text, message=talk.message)

    def question(self, talk: Talk) -> int | None:
        """Return the escalation that a conversation waits for."""
        found = self.rows(WAITS, talk.thread)
        return found[0][0] if found else None

    def approve(self, talk: Talk) -> None:
        """Sign what the newest preview shows; one that found its data locked is asked for again."""
        for escalation, preview, outcome in self.rows(WAITS, talk.thread):
            if outcome == "clean":
                self.reviewer.approve(escalation, preview=preview)
            elif outcome is not None:
                self.reviewer.look_again(escalation)

    def until_shown(self, talk: Talk) -> None:
        """Wait until the conversation waits for a person who can sign what it would do."""

        def shown() -> bool:
            found = self.rows(WAITS, talk.thread)
            if found and found[0][2] not in ("clean", None):
                self.reviewer.look_again(found[0][0])
            return bool(found) and found[0][2] == "clean"

        until(shown, seconds=LONG, what="a preview")

    def until_paid(self, talk: Talk) -> int:
        """Wait until the conversation has ended and its charge is settled, and return the message of it."""
        return int(until(lambda: self.rows(PAID, talk.thread), seconds=LONG, what="a charge that is settled")[0][0])

    def until_asked(self, talk: Talk) -> int:
        """Wait until the conversation waits for a person."""
        found = until(lambda: self.question(talk), seconds=LONG, what="a question")
        assert found is not None
        return found

    def go_on(self, talk: Talk) -> None:
        """Do what brings a conversation to the points of its way."""
        if talk.way == "approved":
            self.until_shown(talk)
            self.approve(talk)
        elif talk.way == "asked":
            self.admin.look_up(self.until_paid(talk))
        else:
            self.say(talk)


@contextmanager
def open_desk(stack: Stack) -> Iterator[Desk]:
    """Log a staff member, a reviewer and an admin in."""
    with ExitStack() as opened:
        people = {role: opened.enter_context(Person(stack, role)) for role in ("support", "reviewer", "admin")}
        yield Desk(stack, opened.enter_context(stack.connect("superuser")), **people)
