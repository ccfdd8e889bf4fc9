"""The demo: made once, paid at the Stripe sandbox through the outbox, the same in our books and in the provider's."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sandbox.demo.cast import CAST, DemoInvoice
from sandbox.demo.provider import NoProvider, Provider
from tests import databases, plugin, stack
from tests.sandbox.stripe import process
from tests.sandbox.stripe.process import Sandbox

EVERYTHING = [
    "SELECT id, name, email, currency, terms_days, provider_customer_id, provider_payment_method, card_last4, created_at"
    " FROM public.billing_customer ORDER BY id",
    "SELECT * FROM public.billing_credit_account ORDER BY customer_id",
    "SELECT * FROM public.billing_credit_entry ORDER BY id",
    "SELECT * FROM public.billing_invoice ORDER BY id",
    "SELECT * FROM public.billing_payment ORDER BY id",
    "SELECT id, state, provider_id, attempts, sends FROM public.outbox_message ORDER BY id",
]


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Run a Stripe sandbox for these tests."""
    with process.running(tmp_path_factory.mktemp("stripe") / "data") as sandbox:
        yield sandbox


def instance(folder: Path, *, provider: Sandbox | None) -> Path:
    """Write down an instance over this process's database, and return its data directory."""
    logins = {
        login: databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login=login) for login in ("owner", "outbox")
    }
    stripe = {"api_base": provider.base, "api_key": process.KEY, "webhook_secret": process.SECRET} if provider else {}
    (folder / "instance.json").write_text(json.dumps({"secret_key": "x", "database": logins, "stripe": stripe}))
    return folder


def demo(data: Path) -> str:
    done = stack.manage("demo", BACKSTOP_DATA=str(data), REDIS_URL="redis://127.0.0.1:1/0")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def state(owner: Any) -> list[list[Any]]:
    return [owner.execute(query).fetchall() for query in EVERYTHING]


def test_it_makes_the_cast_once(owner: Any, provider: Sandbox, tmp_path: Path) -> None:
    data = instance(tmp_path, provider=provider)
    paid = sum(invoice.paid for who in CAST for invoice in who.invoices)
    assert demo(data).startswith(f"Made {len(CAST)} demo customers; {paid} of {paid} invoices are paid.")
    first = state(owner)
    assert [row[1] for row in first[0]] == [who.name for who in CAST]
    assert sorted(row[1] for row in first[1] if row[2]) == ["EUR", "EUR", "EUR", "JPY", "USD"]
    moved = provider.control("money")
    assert demo(data).startswith("Made 0 demo customers; 0 of 0 invoices are paid.")
    assert state(owner) == first
    assert provider.control("money") == moved
    agrees_with_the_provider(owner, provider)
    agrees_with_its_invoices(owner, provider)


def agrees_with_its_invoices(owner: Any, provider: Sandbox) -> None:
    """What the cast says is billed at the provider is, with the payment that is in the books."""
    (payment,) = owner.execute(
        "SELECT c.name, p.provider_invoice_id, p.provider_payment_id, p.amount_minor FROM public.billing_payment p"
        " JOIN public.billing_customer c ON c.id = p.customer_id WHERE p.provider_invoice_id IS NOT NULL"
    ).fetchall()
    (invoice,) = provider.control("objects?kind=invoice")["objects"]
    assert payment[0] == "Example Bakery Ltd"
    assert (invoice["id"], invoice["status"], invoice["amount_paid"]) == (payment[1], "paid", payment[3])
    assert [one["payment"]["payment_intent"] for one in invoice["payments"]["data"]] == [payment[2]]


def agrees_with_the_provider(owner: Any, provider: Sandbox) -> None:
    """Each payment is one succeeded intent of the same customer and amount, and each is what its message promised."""
    intents = {item["id"]: item for item in provider.control("objects?kind=payment_intent")["objects"]}
    rows = owner.execute(
        "SELECT p.provider_payment_id, p.amount_minor, lower(p.currency), c.provider_customer_id, m.uid::text, m.state,"
        " i.status, p.paid_at < now() AND p.paid_at = i.paid_at"
        " FROM public.billing_payment p JOIN public.billing_customer c ON c.id = p.customer_id"
        " JOIN public.billing_invoice i ON i.id = p.invoice_id"
        " JOIN public.outbox_message m ON m.provider_id = p.provider_payment_id"
    ).fetchall()
    assert {row[0] for row in rows} == set(intents)
    for intent, amount, currency, customer, uid, *rest in rows:
        found = intents[intent]
        assert (found["status"], found["amount"], found["currency"], found["customer"]) == (
            "succeeded",
            amount,
            currency,
            customer,
        )
        assert found["metadata"]["backstop_uid"] == uid
        assert rest == ["succeeded", "paid", True]


def test_it_makes_customers_without_a_provider(owner: Any, tmp_path: Path) -> None:
    told = demo(instance(tmp_path, provider=None))
    assert "There is no Stripe sandbox here: the customers have no cards and no payments." in told
    assert owner.execute("SELECT count(*) FROM public.billing_customer WHERE card_last4 IS NULL").fetchone() == (len(CAST),)
    assert owner.execute("SELECT DISTINCT status FROM public.billing_invoice").fetchall() == [("draft",)]
    assert owner.execute("SELECT count(*) FROM public.outbox_message").fetchone() == (0,)


def test_it_says_so_when_the_provider_is_gone(owner: Any, tmp_path: Path) -> None:
    data = instance(tmp_path, provider=None)
    given = json.loads((data / "instance.json").read_text())
    gone = {"stripe": {"api_base": "http://127.0.0.1:1", "api_key": "sk_test_x"}}
    (data / "instance.json").write_text(json.dumps(given | gone))
    done = stack.manage("demo", BACKSTOP_DATA=str(data))
    assert done.returncode == 1
    assert "CommandError: The Stripe sandbox at http://127.0.0.1:1 does not answer" in done.stderr
    assert owner.execute("SELECT count(*) FROM public.billing_customer").fetchone() == (0,)


@pytest.mark.parametrize(("base", "key"), [("https://api.stripe.com", "sk_test_x"), ("http://127.0.0.1:1", "sk_live_x")])
def test_it_never_goes_to_the_real_provider(base: str, key: str) -> None:
    with pytest.raises(NoProvider, match="at the Stripe sandbox only"):
        Provider(api_base=base, api_key=key)


@pytest.mark.parametrize(
    ("today", "months_ago", "period"),
    [
        (date(2026, 11, 30), 0, date(2026, 11, 1)),
        (date(2026, 11, 30), 1, date(2026, 10, 1)),
        (date(2026, 1, 31), 1, date(2025, 12, 1)),
        (date(2026, 2, 28), 14, date(2024, 12, 1)),
    ],
)
def test_it_dates_invoices_by_month(today: date, months_ago: int, period: date) -> None:
    invoice = DemoInvoice(months_ago=months_ago, amount_minor=1, description="any")
    assert invoice.billing_period(today) == period


def test_it_leaves_this_month_free_for_the_first_story() -> None:
    cycles = CAST[0]
    assert (cycles.name, cycles.currency, cycles.credit_minor) == ("Sample Cycles BV", "EUR", 12_000)
    assert all(invoice.months_ago for invoice in cycles.invoices)
    assert {who.currency for who in CAST} == {"EUR", "GBP", "USD", "JPY"}
