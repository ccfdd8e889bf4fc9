"""What the outbox's tests start from: a customer with a card at the provider, and the domain's own verbs on their money."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from billing import invoices, refunds
from billing.invoices import Reference
from outbox import finishing, leases, relay
from outbox.endings import Ending
from outbox.messages import Cause
from tests.billing import makers
from tests.outbox.provider import Provider

Connection = psycopg.Connection[Any]
Row = dict[str, Any]


PUT = """
UPDATE public.outbox_message
SET state = %(state)s, next_attempt_at = now(), ever_unknown = %(state)s IN ('uncertain', 'dead'),
    first_sent_at = CASE WHEN %(state)s NOT IN ('ready', 'leased', 'cancelled') THEN now() END,
    finished_at = CASE WHEN %(state)s IN ('succeeded', 'rejected', 'cancelled') THEN now() END,
    lease_token = CASE WHEN %(state)s = 'leased' THEN gen_random_uuid() END,
    leased_until = CASE WHEN %(state)s = 'leased' THEN now() + interval '2 min' END,
    claimed_from = CASE WHEN %(state)s = 'leased' THEN 'ready' END
WHERE id = %(id)s
"""


@dataclass
class Desk:
    """A customer, the provider, and a pool as the outbox login."""

    owner: Connection
    agent: Connection
    pool: "ConnectionPool[Connection]"
    provider: Provider
    customer: int
    months: int = 0
    web: Any = None

    def card(self, method: str) -> None:
        """Give the customer a test payment method, such as pm_card_visa, at the provider."""
        customer = self.provider.create("/v1/customers", email="accounts@example.test")
        attached = self.provider.create(f"/v1/payment_methods/{method}/attach", customer=customer["id"])
        self.owner.execute(
            "UPDATE public.billing_customer SET provider_customer_id = %s, provider_payment_method = %s WHERE id = %s",
            (customer["id"], attached["id"], self.customer),
        )

    def charge(self, amount_minor: int = 48_000) -> Row:
        """Queue the charge of a new invoice and return its message."""
        self.months += 1
        period = date(2026 + self.months // 12, self.months % 12 + 1, 1)
        invoice = makers.make_invoice(self.owner, customer_id=self.customer, billing_period=period, amount_minor=amount_minor)
        return self.charge_again(invoice, amount_minor)

    def charge_again(self, invoice: int, amount_minor: int = 48_000) -> Row:
        """Queue a charge of an invoice."""
        with makers.about(self.agent, self.customer) as conn:
            reference = Reference(customer_id=self.customer, invoice_id=invoice)
            invoices.queue_charge(conn, invoice=reference, amount_minor=amount_minor, currency="EUR", cause=self.cause)
        return self.newest()

    def refund(self, invoice: int, amount_minor: int = 10_000) -> Row:
        """Queue a refund of a paid invoice and return its message."""
        with makers.about(self.agent, self.customer) as conn:
            reference = Reference(customer_id=self.customer, invoice_id=invoice)
            refunds.request(
                conn, invoice=reference, amount_minor=amount_minor, currency="EUR", reason="asked for", cause=self.cause
            )
        return self.newest()

    def refund_pair(self, invoice: int) -> tuple[Row, Row]:
        """Queue two refunds of one payment, which the domain allows one at a time only, and return their messages."""
        first = self.refund(invoice)
        self.owner.execute(
            "UPDATE public.billing_refund SET status = 'confirmed' WHERE id = %s", (first["payload"]["refund_id"],)
        )
        return first, self.refund(invoice)

    def unsettle(self, message: Row, *, lost: bool = True) -> None:
        """Have the message name an invoice that is not there, so that its effect on the books fails; or its own again."""
        invoice = 0 if lost else message["payload"]["invoice_id"]
        self.owner.execute(
            "UPDATE public.outbox_message SET payload = jsonb_set(payload, '{invoice_id}', to_jsonb(%s::bigint)) WHERE id = %s",
            (invoice, message["id"]),
        )

    def put(self, message: Row, state: str) -> None:
        """Put a message into a state, as if it had come there."""
        self.owner.execute(PUT, {"id": message["id"], "state": state})

    def paid(self, amount_minor: int = 48_000) -> int:
        """Return an invoice that a delivered charge has paid."""
        message = self.charge(amount_minor)
        self.deliver()
        assert self.read(message)["state"] == "succeeded"
        invoice: int = message["payload"]["invoice_id"]
        return invoice

    @property
    def cause(self) -> Cause:
        """Return a cause about the customer, of no thread."""
        return Cause(ai_message_id="ai-1", call_index=0, subject=self.customer)

    def deliver(self) -> bool:
        """Deliver what is due, as the task does; return whether something may be left."""
        return relay.drain(self.pool, go_on=lambda: True, wake=lambda: None)

    def deliver_once(self) -> None:
        """Deliver the message that is due longest, once."""
        message = self.claim()
        assert message, "nothing is due"
        relay.deliver(self.pool, message)

    def deliver_all(self, message: Row) -> None:
        """Deliver until the message is settled, letting its time come at once."""
        for _ in range(5):
            if self.read(message)["state"] in ("ready", "uncertain", "accepted"):
                self.due(message)
                self.deliver()

    def work(self, message: Row) -> None:
        """Carry a leased message on, as its worker does."""
        relay.deliver(self.pool, message)

    def send(self, message: Row) -> None:
        """Send the current step of a leased message, as it stands."""
        if isinstance(ended := relay._sent(self.pool, message), Ending):
            finishing.finish(self.pool, ended)

    def claim(self) -> Row | None:
        """Lease what is due."""
        with self.pool.connection() as conn:
            return leases.claim(conn, owner="test")

    def due(self, message: Row) -> None:
        """Let the message's time come now, and its destination's."""
        self.owner.execute("UPDATE public.outbox_destination SET parked_until = now() WHERE parked_until IS NOT NULL")
        self.owner.execute("UPDATE public.outbox_message SET next_attempt_at = now() WHERE id = %s", (message["id"],))

    def later(self, message: Row, hours: float) -> None:
        """Let everything of the message have happened hours earlier, and the provider's clock go forward as much."""
        self.provider.advance(int(hours))
        names = ("next_attempt_at", "give_up_at", "leased_until", "sending_at", "first_sent_at", "key_deadline")
        moved = ", ".join(f"{name} = {name} - make_interval(hours => %(hours)s)" for name in names)
        self.owner.execute(
            f"UPDATE public.outbox_message SET {moved} WHERE id = %(id)s", {"hours": int(hours), "id": message["id"]}
        )

    def read(self, message: Row) -> Row:
        """Return the message as it is now."""
        return self.one("SELECT * FROM public.outbox_message WHERE id = %s", message["id"])

    def newest(self) -> Row:
        """Return the message that was enqueued last."""
        return self.one("SELECT * FROM public.outbox_message ORDER BY id DESC LIMIT 1")

    def deliveries(self, message: Row) -> list[tuple[str, str]]:
        """Return step and outcome of the message's evidence, in order; a stale one is marked."""
        query = "SELECT step, outcome, stale FROM public.outbox_delivery WHERE message_id = %s ORDER BY id"
        rows = self.owner.execute(query, (message["id"],)).fetchall()
        return [(step, f"{outcome}, stale" if stale else outcome) for step, outcome, stale in rows]

    def invoice(self, message: Row) -> str:
        """Return the status of the message's invoice."""
        return str(
            self.one("SELECT status FROM public.billing_invoice WHERE id = %s", message["payload"]["invoice_id"])["status"]
        )

    def refund_status(self, message: Row) -> str:
        """Return the status of the message's refund."""
        query = "SELECT status FROM public.billing_refund WHERE id = %s"
        return str(self.one(query, message["payload"]["refund_id"])["status"])

    def one(self, query: Any, *values: Any) -> Row:
        """Return one row that the owner sees."""
        with self.owner.cursor(row_factory=dict_row) as cursor:
            row = cursor.execute(query, values).fetchone()
        assert row is not None
        return row
