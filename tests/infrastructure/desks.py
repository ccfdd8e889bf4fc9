"""What people say to the agent about a customer whose card works, and what the books say of it afterwards."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from ledger import invariants
from tests.agent.batches import make_customer
from tests.outbox.provider import Provider

Connection = psycopg.Connection[Any]

STAFF = 7
TEXT = "Create an invoice of €480.00 for November 2025 and charge it to the card."
AMOUNT = 48_000
ROLES = ["human", "ai", "tool", "tool", "ai"]
TOOLS = ["CreateInvoice", "QueueCharge"]
# What time does: a thread's back-off ends, a message's next try comes, the lease of a worker that let go of it runs out.
LATER = (
    "UPDATE public.agent_thread SET next_sweep_at = now() WHERE thread = %(thread)s",
    "UPDATE public.outbox_message SET next_attempt_at = now() WHERE thread = %(thread)s AND state IN ('ready', 'uncertain')",
    "UPDATE public.outbox_message SET leased_until = now() - interval '1 s' WHERE thread = %(thread)s AND state = 'leased'",
)


@dataclass(frozen=True, kw_only=True)
class Desk:
    """The books of one database, read and written on connections of the moment: the server may be gone in between."""

    address: Callable[[str], str]  # of the database, for a login
    provider: Provider

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return what the owner sees."""
        with psycopg.connect(self.address("owner"), autocommit=True) as conn:
            return conn.execute(query, values).fetchall()

    def change(self, *statements: str, **values: Any) -> None:
        """Change something as the owner."""
        with psycopg.connect(self.address("owner"), autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement, values)

    def hold(self, tool: str, *, above: int) -> None:
        """Ask a person about a tool's amounts above so many minor units of EUR."""
        self.change(
            "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by)"
            " VALUES ('per_call', %(tool)s, 'EUR', %(above)s, 'a test', %(staff)s)",
            tool=tool,
            above=above,
            staff=STAFF,
        )

    def begin(self, *, thread: uuid.UUID | None = None) -> "Talk":
        """Begin a conversation about a new customer with a card that works."""
        talk = Talk(desk=self, thread=thread or uuid.uuid4())
        with psycopg.connect(self.address("owner"), autocommit=True) as conn:
            customer = make_customer(conn, credit_minor=12_000)
            made = self.provider.create("/v1/customers", email="accounts@example.test")
            card = self.provider.create("/v1/payment_methods/pm_card_visa/attach", customer=made["id"])
            conn.execute(
                "UPDATE public.billing_customer SET provider_customer_id = %s, provider_payment_method = %s WHERE id = %s",
                (made["id"], card["id"], customer),
            )
            conn.execute(
                "INSERT INTO public.auth_user (id, username, password, is_superuser, first_name, last_name, email, is_staff,"
                " is_active, date_joined) VALUES (%s, 'Support', '', false, '', '', '', false, true, now())"
                " ON CONFLICT DO NOTHING",
                (STAFF,),
            )
            conn.execute(
                "INSERT INTO public.agent_conversation (thread, subject, created_by_id) VALUES (%s, %s, %s)",
                (talk.thread, customer, STAFF),
            )
        return talk

    def broken(self) -> list[Any]:
        """Return what contradicts the invariants, now that nothing runs."""
        with psycopg.connect(self.address("keeper"), autocommit=True) as conn:
            return list(invariants.check(conn, quiet=True))


@dataclass(frozen=True, kw_only=True)
class Talk:
    """One conversation."""

    desk: Desk
    thread: uuid.UUID
    said: list[str] = field(default_factory=list)

    def say(self, text: str = TEXT) -> None:
        """Queue a message, as the page does; no bell is rung."""
        self.said.append(text)
        self.desk.change(
            "INSERT INTO public.agent_staff_message (id, thread, number, author, text)"
            " VALUES (gen_random_uuid(), %(thread)s, %(number)s, %(author)s, %(text)s)",
            thread=self.thread,
            number=len(self.said),
            author=STAFF,
            text=text,
        )

    def state(self) -> str:
        """Return the thread's state; empty before its first run."""
        found = self.desk.rows("SELECT state FROM public.agent_thread WHERE thread = %s", self.thread)
        return str(found[0][0]) if found else ""

    def ended(self) -> bool:
        """Say whether everything that was said is answered."""
        queued = self.desk.rows("SELECT 1 FROM public.agent_staff_message WHERE thread = %s AND state = 'queued'", self.thread)
        return self.state() == "idle" and not queued

    def settled(self) -> bool:
        """Say whether the conversation has ended and what it sent is settled."""
        unsettled = "SELECT 1 FROM public.outbox_message WHERE thread = %s AND state <> 'succeeded'"
        return self.ended() and bool(self.messages()) and not self.desk.rows(unsettled, self.thread)

    def messages(self) -> list[uuid.UUID]:
        """Return the uids of what it sent."""
        return [row[0] for row in self.desk.rows("SELECT uid FROM public.outbox_message WHERE thread = %s", self.thread)]

    def roles(self) -> list[str]:
        """Return who spoke, in order."""
        query = "SELECT role FROM public.agent_transcript_entry WHERE thread = %s ORDER BY position"
        return [row[0] for row in self.desk.rows(query, self.thread)]

    def applied(self) -> list[str]:
        """Return the tools of the calls that were applied, in order."""
        query = "SELECT tool FROM public.ledger_execution WHERE thread = %s ORDER BY ai_message_id, call_index"
        return [row[0] for row in self.desk.rows(query, self.thread)]

    def outcomes(self) -> list[str]:
        """Return the outcomes of the attempts, in the order of the attempts."""
        query = "SELECT outcome FROM public.ledger_attempt_outcome WHERE thread = %s ORDER BY attempt_id"
        return [row[0] for row in self.desk.rows(query, self.thread)]

    def later(self) -> None:
        """Let the time of the next try come, which a message's is two minutes after its worker let go of it."""
        self.desk.change(*LATER, thread=self.thread)

    def forget_lease(self) -> None:
        """Let the agent's lease run out: a server that dies may forget, as nobody waits for it, that it was given back."""
        self.desk.change(
            "UPDATE public.agent_thread SET leased_until = now() WHERE thread = %(thread)s AND leased_until IS NOT NULL",
            thread=self.thread,
        )

    def check(self) -> None:
        """Compare with a conversation that nothing disturbed: every effect once, one answer to each call."""
        assert self.roles() == ROLES
        assert self.applied() == TOOLS
        invoices = self.desk.rows(
            "SELECT i.status, i.amount_minor, (SELECT count(*) FROM public.billing_payment p WHERE p.invoice_id = i.id)"
            " FROM public.billing_invoice i JOIN public.agent_conversation c ON c.subject = i.customer_id WHERE c.thread = %s",
            self.thread,
        )
        assert invoices == [("paid", AMOUNT, 1)]
        assert [self.desk.provider.movements(uid) for uid in self.messages()] == [[AMOUNT]]
