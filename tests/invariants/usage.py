"""A database that was really used: conversations driven to every kind of end, and their money sent to the provider."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.test import override_settings
from psycopg_pool import ConnectionPool

from billing import customers
from billing.customers import Card
from outbox import relay, requests, webhooks
from tests import databases, plugin
from tests.agent.scripts import calls, says
from tests.agent.talks import Talk
from tests.outbox import provider as providers
from tests.outbox.billed import link
from tests.outbox.provider import Provider

Connection = psycopg.Connection[Any]
SEPTEMBER = {"billing_period": "2026-09-01", "currency": "EUR"}
OCTOBER = {"billing_period": "2026-10-01", "currency": "EUR"}


@dataclass
class Usage:
    """The staff's side, the relay's side and the provider of one database."""

    agent: "ConnectionPool[Connection]"
    outbox: "ConnectionPool[Connection]"
    owner: Connection
    web: Connection
    provider: Provider

    def customer(self, name: str, method: str = "pm_card_visa") -> int:
        """Return a new customer with €300.00 of credit and a card."""
        at_provider = self.provider.create("/v1/customers", email=f"{name}@example.test")["id"]
        card = self.provider.create(f"/v1/payment_methods/{method}/attach", customer=at_provider)["id"]
        return customers.create(
            self.owner,
            name=name,
            email=f"{name}@example.test",
            currency="EUR",
            opening_minor=30_000,
            card=Card(provider_customer_id=at_provider, provider_payment_method=card, card_last4="4242"),
        )

    def talk(self, customer: int, *script: Any, text: str = "Please do it.") -> Talk:
        """Drive a new conversation as far as it goes."""
        talk = Talk(pool=self.agent, owner=self.owner, web=self.web, customer=customer)
        self.owner.execute(
            "INSERT INTO public.auth_user_groups (user_id, group_id)"
            " SELECT %s, id FROM public.auth_group WHERE name = 'reviewer' ON CONFLICT DO NOTHING",
            (talk.reviewer,),
        )
        talk.say(text)
        talk.drive(*script)
        return talk

    def deliver(self) -> None:
        """Send what is due."""
        relay.drain(self.outbox, go_on=lambda: True, wake=lambda: None)
        webhooks.process_due(self.outbox, go_on=lambda: True)


def call(customer: int, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """Return a call about the customer."""
    return tool, {"customer_id": customer, **arguments}


@contextmanager
def connected(superuser: Connection, folder: Path) -> Iterator[Usage]:
    """Empty the database and open everything that uses it."""
    databases.empty(superuser)

    def address(login: str) -> str:
        return databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login=login)

    with (
        providers.running(folder) as provider,
        override_settings(STRIPE_API_KEY=providers.API_KEY, STRIPE_API_BASE=provider.base),
        ConnectionPool(address("agent"), kwargs={"autocommit": True}, min_size=1, max_size=4) as agent,
        ConnectionPool(address("outbox"), kwargs={"autocommit": True}, min_size=1, max_size=4) as outbox,
        psycopg.connect(address("owner"), autocommit=True) as owner,
        psycopg.connect(address("web"), autocommit=True) as web,
    ):
        yield Usage(agent=agent, outbox=outbox, owner=owner, web=web, provider=provider)


def live(usage: Usage) -> None:
    """Let staff, agent, reviewers, relay and provider do what they do on any day."""
    _correct_and_charge(usage)
    _void_some(usage)
    _be_refused(usage)
    _ask(usage)
    _review(usage)
    _wait(usage)
    usage.deliver()
    _refund(usage)
    _withdraw(usage)
    usage.deliver()


def _correct_and_charge(usage: Usage) -> None:
    """A look-up; a step whose second call overdraws; the step again; then another month, voided."""
    who = usage.customer("cycles")
    invoice, charge = call(who, "CreateInvoice", **SEPTEMBER, amount_minor=48_000), {**SEPTEMBER, "customer_id": who}
    usage.talk(
        who,
        calls(call(who, "LookUpCustomer"), ids=["a"]),
        calls(invoice, call(who, "ApplyCredit", **SEPTEMBER, amount_minor=60_000), ids=["b", "c"]),
        calls(
            invoice,
            call(who, "ApplyCredit", **SEPTEMBER, amount_minor=12_000),
            ("QueueCharge", {**charge, "amount_minor": 36_000}),
            ids=["d", "e", "f"],
        ),
        says("Done."),
    )
    usage.talk(
        who,
        calls(
            call(who, "CreateInvoice", **OCTOBER, amount_minor=5_000),
            call(who, "ApplyCredit", **OCTOBER, amount_minor=5_000),
            call(who, "VoidInvoice", billing_period="2026-10-01", reason="A mistake"),
            call(who, "CreateInvoice", **OCTOBER, amount_minor=1_000),
            call(who, "ApplyCredit", **OCTOBER, amount_minor=1_000),
            call(who, "QueueCharge", **OCTOBER, amount_minor=0),
        ),
        says("Voided."),
    )


def _void_some(usage: Usage) -> None:
    """Two invoices to void, of which one is not there: the other one is voided alone."""
    who = usage.customer("studio")
    void = [call(who, "VoidInvoice", billing_period=on["billing_period"], reason="A mistake") for on in (OCTOBER, SEPTEMBER)]
    usage.talk(
        who,
        calls(call(who, "CreateInvoice", **SEPTEMBER, amount_minor=4_000), ids=["a"]),
        calls(*void, ids=["b", "c"]),
        says("One is voided."),
    )


def _be_refused(usage: Usage) -> None:
    """A charge to a card that declines."""
    who = usage.customer("freight", "pm_card_visa_chargeDeclinedInsufficientFunds")
    step = calls(
        call(who, "CreateInvoice", **SEPTEMBER, amount_minor=7_000), call(who, "QueueCharge", **SEPTEMBER, amount_minor=7_000)
    )
    usage.talk(who, step, says("Queued."))


def _ask(usage: Usage) -> None:
    """A memo above the limit, approved; another one, rejected; a question, answered; a wrong call, refused."""
    who = usage.customer("bakery")
    memo = call(who, "IssueCreditMemo", **SEPTEMBER, amount_minor=60_000, reason="Outage")
    talk = usage.talk(
        who,
        calls(call(who, "CreateInvoice", **SEPTEMBER, amount_minor=400_000), memo, ids=["a", "b"]),
        calls(memo, ids=["c"]),
        calls(call(who, "AskHuman", question="Is it enough?"), ids=["d"]),
        calls(call(who, "IssueCreditMemo", **SEPTEMBER, amount_minor=-1, reason="Outage"), ids=["e"]),
        says("Done."),
    )
    for kind, text in (("approve", ""), ("reject", "Once is enough."), ("answer", "Yes.")):
        talk.decide(kind, text)
        talk.drive(*_script(talk))
    assert talk.state() == "idle"


def _script(talk: Talk) -> list[Any]:
    """Return the script that goes on where the conversation stands: replies are picked by their number."""
    who = talk.customer
    memo = call(who, "IssueCreditMemo", **SEPTEMBER, amount_minor=60_000, reason="Outage")
    wrong = call(who, "IssueCreditMemo", **SEPTEMBER, amount_minor=-1, reason="Outage")
    return [
        says("-"),
        calls(memo, ids=["c"]),
        calls(call(who, "AskHuman", question="Is it enough?"), ids=["d"]),
        calls(wrong, ids=["e"]),
        says("Done."),
    ]


def _review(usage: Usage) -> None:
    """A step above the limit that a reviewer lowers; another that a reviewer performs; a third one, withdrawn."""
    who = usage.customer("mills")
    bill = call(who, "CreateInvoice", **SEPTEMBER, amount_minor=400_000)
    memo = {**SEPTEMBER, "customer_id": who, "amount_minor": 60_000, "reason": "Outage"}
    script = [
        calls(bill, ("IssueCreditMemo", memo), ids=["a", "b"]),
        calls(("IssueCreditMemo", memo | {"amount_minor": 55_000, "reason": "Seats"}), ids=["c"]),
        calls(("IssueCreditMemo", memo | {"amount_minor": 56_000, "reason": "Delay"}), ids=["d"]),
        says("Done."),
    ]
    talk = usage.talk(who, *script)
    talk.revise({"index": 0, "arguments": bill[1]}, {"index": 1, "arguments": memo | {"amount_minor": 40_000}})
    talk.drive(*script)
    talk.decide("approve")
    talk.drive(*script)
    performed = memo | {"amount_minor": 55_000, "reason": "Seats that were counted twice"}
    talk.revise({"index": 0, "arguments": performed}, as_person=True, text="I do it.")
    talk.drive(*script)
    talk.decide("approve")
    talk.drive(*script)
    talk.decide("withdraw", "Not needed.")
    talk.drive(*script)
    assert talk.state() == "idle"


def _wait(usage: Usage) -> None:
    """Three steps that fail: a person is asked and has not answered yet."""
    who = usage.customer("labs")
    wrong = [calls(call(who, "ApplyCredit", amount_minor=90_000, currency="EUR"), ids=[name]) for name in "xyz"]
    assert usage.talk(who, *wrong).state() == "waiting"


def _refund(usage: Usage) -> None:
    """Part of the first charge, which paid an invoice at the provider too, goes back to the card, and is credited there."""
    who, invoice = usage.owner.execute("SELECT customer_id, invoice_id FROM public.billing_payment").fetchone()  # type: ignore[misc]
    link(usage.owner, usage.provider, invoice=invoice)
    usage.talk(who, calls(call(who, "QueueRefund", **SEPTEMBER, amount_minor=10_000, reason="Asked for")), says("Queued."))
    usage.deliver()


def _withdraw(usage: Usage) -> None:
    """A charge that somebody withdraws before it is sent, and one that still waits behind nothing."""
    who = usage.customer("press")
    step = calls(
        call(who, "CreateInvoice", **SEPTEMBER, amount_minor=21_000), call(who, "QueueCharge", **SEPTEMBER, amount_minor=21_000)
    )
    usage.talk(who, step, says("Queued."))
    newest = usage.owner.execute("SELECT max(id) FROM public.outbox_message").fetchone()[0]  # type: ignore[index]
    requests.ask(usage.web, message=newest, kind="cancel", reason="Too early", user=7)
    with usage.outbox.connection() as conn:
        requests.carry_out(conn)
