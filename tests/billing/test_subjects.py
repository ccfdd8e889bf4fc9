"""Subjects: found by name, e-mail or id; told to the model; shown beside the conversation."""

from typing import Any

from django.template.loader import render_to_string

from billing import customer_panel, subjects
from billing.models import Invoice
from tests.billing import makers


def test_it_finds_customers(owner: Any) -> None:
    bakery = makers.make_customer(owner, name="Example Bakery Ltd", currency="GBP")
    cycles = makers.make_customer(owner, name="Sample Cycles BV")
    assert [subject.id for subject in subjects.search("")] == [bakery, cycles]
    assert [subject.name for subject in subjects.search(" bakery ")] == ["Example Bakery Ltd"]
    assert subjects.search(str(cycles))[0].id == cycles
    assert len(subjects.search("example.test", limit=1)) == 1
    assert subjects.search("100% nobody_\x00") == []
    assert subjects.search("9" * 40) == []


def test_it_names_them(owner: Any, customer: int) -> None:
    found = subjects.find(customer)
    assert found and (found.name, found.detail.rpartition(" ")[2]) == ("Sample Cycles BV", "EUR")
    assert subjects.find(10**9) is None
    assert subjects.names([customer, 10**9]) == {customer: "Sample Cycles BV"}


def test_it_tells_the_model_who_it_is_about(agent: Any, customer: int) -> None:
    assert subjects.prompt_lines(agent, customer) == [f"customer_id: {customer}", "currency: EUR"]
    assert subjects.prompt_lines(agent, 10**9) == ["customer_id: 1000000000"]
    assert agent.execute("SELECT current_setting('backstop.subject', true)").fetchone() in [("",), (None,)]


def test_it_has_a_mark_for_every_state() -> None:
    assert set(customer_panel.MARKS) == set(Invoice.Status.values) - {"paid", "void"}


def test_it_shows_the_customers_money(owner: Any, customer: int) -> None:
    fill(owner, customer)
    shown = " ".join(render_to_string("billing/customer_panel.html", subjects.panel(customer)).split())
    for words in (
        "Sample Cycles BV",
        "Net 14 · EUR",
        "Card 4242 is on file",
        '<p class="big">€120.00</p>',
        "November 2026",
        "€480.00 · due",
        "€640.00",
        "€200.00 refunded",
        "At the provider <code>in_1Bq</code>",
        "Charge €12.40",
        "no id yet",
        "Refund €3.20",
        "re_…Zk81",
        'data-state="uncertain"',
        'data-state="sent"',
    ):
        assert words in shown
    assert "Charge €99.00" not in shown


def fill(owner: Any, customer: int) -> None:
    """Give the customer an open invoice, a payment that was partly refunded, and messages in three states."""
    makers.make_invoice(owner, customer_id=customer)
    _, payment = makers.make_paid_invoice(owner, customer_id=customer, refunded_minor=20_000)
    owner.execute("UPDATE public.billing_payment SET provider_invoice_id = 'in_1Bq' WHERE id = %s", (payment,))
    for number, (topic, amount, state, provider_id) in enumerate(
        [
            ("payment.charge", 1_240, "uncertain", None),
            ("payment.refund", 320, "accepted", "re_1AbcZk81"),
            ("payment.charge", 9_900, "succeeded", "pi_1"),
        ]
    ):
        owner.execute(
            "INSERT INTO public.outbox_message (topic, destination, aggregate, dedupe_key, subject,"
            " payload, steps, repeat, state, provider_id, first_sent_at, finished_at) VALUES (%s, 'stripe', %s, %s, %s,"
            " jsonb_build_object('amount_minor', %s::bigint, 'currency', 'EUR'), '[]', 'keyed', %s, %s, now(), now())",
            (topic, f"a:{number}", f"d:{number}", customer, amount, state, provider_id),
        )


def test_it_shows_money_that_nobody_owes(owner: Any, customer: int) -> None:
    invoice = makers.make_invoice(owner, customer_id=customer, status="void")
    makers.make_payment(owner, invoice_id=invoice, stray=True)

    shown = " ".join(render_to_string("billing/customer_panel.html", subjects.panel(customer)).split())

    assert "Not owed" in shown


def test_it_escapes_what_customers_write(owner: Any) -> None:
    customer = makers.make_customer(owner, name="<script>alert(1)</script>")
    shown = render_to_string("billing/customer_panel.html", subjects.panel(customer))
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_it_shows_an_empty_customer(owner: Any) -> None:
    customer = makers.make_customer(owner, card=False)
    shown = render_to_string("billing/customer_panel.html", subjects.panel(customer))
    assert shown.count("None") == 2
    assert "Nothing" in shown
    assert "No card is on file" in shown
    assert "was €" not in shown
