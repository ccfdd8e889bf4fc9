"""A thread under a lease, and batches on it: what the tests of the tools node start from."""

import uuid
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool

from agent.batch import Batch
from agent.validation import ProposedCall
from tests import numbers

Connection = psycopg.Connection[Any]


@dataclass
class Desk:
    """One customer, one thread that this process holds with a fence, and a pool as the agent login."""

    pool: "ConnectionPool[Connection]"
    owner: Connection
    customer: int
    thread: uuid.UUID
    fence: int = 1
    steps: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    def batch(self, *calls: tuple[str, dict[str, Any] | None], **changes: Any) -> Batch:
        """Return a batch of a new step: `("ApplyCredit", {...}), …`; the customer's id is filled in."""
        self.steps += 1
        proposed = tuple(
            ProposedCall(
                index=index,
                id=f"call-{index}",
                tool=tool,
                arguments=None if given is None else {"customer_id": self.customer, **given},
            )
            for index, (tool, given) in enumerate(calls)
        )
        values: dict[str, Any] = {
            "thread": self.thread,
            "ai_message_id": f"ai-{self.steps}",
            "subject": self.customer,
            "on_behalf_of": 7,
            "fence": self.fence,
            "model": "test",
            "prompt_version": "1",
            "calls": proposed,
        }
        return Batch(**(values | changes))

    def set_policy(self, rule: str, value: int | None, *, tool: str = "", currency: str = "") -> None:
        """Set a number of a rule, as two admins may to any."""
        numbers.put(self.owner, rule, value, tool=tool, currency=currency)

    def count(self, table: str, where: str = "true") -> int:
        """Return how many rows the owner sees."""
        row = self.owner.execute(f"SELECT count(*) FROM public.{table} WHERE {where}").fetchone()
        assert row
        return int(row[0])

    def scalar(self, query: str, *values: Any) -> Any:
        """Return the first column of the first row that the owner sees."""
        row = self.owner.execute(query, values).fetchone()
        return row[0] if row else None

    def outcomes(self) -> list[dict[str, Any]]:
        """Return the outcomes of all attempts, oldest first."""
        cursor = self.owner.execute("SELECT * FROM public.ledger_attempt_outcome ORDER BY attempt_id")
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def make_customer(owner: Connection, *, credit_minor: int = 0, currency: str = "EUR") -> int:
    """Return the id of a new customer with an opening credit and a card."""
    row = owner.execute(
        "INSERT INTO public.billing_customer (name, email, currency, provider_customer_id, provider_payment_method, card_last4)"
        " VALUES ('Example', gen_random_uuid()::text, %s, 'cus_' || gen_random_uuid(), 'pm_1', '4242') RETURNING id",
        (currency,),
    ).fetchone()
    assert row
    with owner.transaction():
        owner.execute(
            "INSERT INTO public.billing_credit_account (customer_id, currency, balance_minor, entries) VALUES (%s, %s, %s, %s)",
            (row[0], currency, credit_minor, int(credit_minor > 0)),
        )
        if credit_minor:
            owner.execute(
                "INSERT INTO public.billing_credit_entry (customer_id, number, currency, amount_minor, balance_after_minor, kind)"
                " VALUES (%s, 1, %s, %s, %s, 'opening')",
                (row[0], currency, credit_minor, credit_minor),
            )
    return int(row[0])


def hold_thread(owner: Connection, *, fence: int = 1) -> uuid.UUID:
    """Return a new thread whose current fence is given."""
    thread = uuid.uuid4()
    owner.execute(
        "INSERT INTO public.agent_thread (thread, fence, leased_until) VALUES (%s, %s, now() + interval '1 hour')",
        (thread, fence),
    )
    return thread


def move_credit(owner: Connection, customer: int, *, amount_minor: int) -> None:
    """Change a balance as somebody else would: account and entry in one transaction."""
    with owner.transaction():
        row = owner.execute(
            "UPDATE public.billing_credit_account SET balance_minor = balance_minor + %s, entries = entries + 1"
            " WHERE customer_id = %s RETURNING balance_minor, entries, currency",
            (amount_minor, customer),
        ).fetchone()
        assert row
        owner.execute(
            "INSERT INTO public.billing_credit_entry (customer_id, number, currency, amount_minor, balance_after_minor, kind)"
            " VALUES (%s, %s, %s, %s, %s, 'memo')",
            (customer, row[1], row[2], amount_minor, row[0]),
        )
