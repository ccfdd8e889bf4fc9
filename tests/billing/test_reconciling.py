"""Books that disagree, broken by hand: each is asked about once, and each way to settle it leaves the next scan clean."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.billing import makers
from tests.escalations import scanned
from tests.escalations.scanned import CLEAN, choose, scan, state

CHARGE = """
INSERT INTO public.outbox_message (topic, destination, aggregate, dedupe_key, subject, payload, steps, repeat, state,
    first_sent_at, finished_at, provider_id)
SELECT 'payment.charge', 'stripe', 'invoice:' || id, 'charge:invoice:' || id || ':1', customer_id,
    jsonb_build_object('invoice_id', id, 'customer_id', customer_id, 'amount_minor', amount_minor, 'currency', currency),
    '[{"name": "create", "method": "POST", "path": "/v1/payment_intents", "params": {}, "key": "k", "renewable": true}]',
    'keyed', %s, now(), now(), 'pi_' || id
FROM public.billing_invoice WHERE id = %s
"""


@pytest.fixture
def broken(superuser: Any) -> Callable[..., None]:
    """Return a function that changes rows as only somebody at the database's console can, unseen by every trigger."""

    def change(query: str, *values: Any) -> None:
        with superuser.transaction():
            superuser.execute("SET LOCAL session_replication_role = replica")
            superuser.execute(query, values)

    return change


def test_it_agrees_with_books_that_were_kept(owner: Any, outbox: Any) -> None:
    customer = makers.make_customer(owner, credit_minor=12_000)
    makers.make_invoice(owner, customer_id=customer)
    assert scan(outbox) == CLEAN


def test_a_balance_that_its_entries_do_not_add_up_to(owner: Any, web: Any, outbox: Any, broken: Callable[..., None]) -> None:
    customer = makers.make_customer(owner, credit_minor=12_000)
    broken("UPDATE public.billing_credit_account SET balance_minor = 13_000 WHERE customer_id = %s", customer)
    case = scanned.found_once(outbox, object_=f"balance:{customer}")
    assert scanned.asked(outbox)[0][3] == "The credit balance is €130.00, but its entries add up to €120.00."
    assert choose(web, case, "compensate", text="A bank fee, explained.").decision
    assert state(outbox, case) == "done"
    assert scan(outbox) == CLEAN, "a person let it stand as it is"
    broken("UPDATE public.billing_credit_account SET balance_minor = 14_000 WHERE customer_id = %s", customer)
    assert scan(outbox)[:2] == (1, 1), "as it is now nobody has let it stand"
    broken("UPDATE public.billing_credit_account SET balance_minor = 12_000 WHERE customer_id = %s", customer)
    assert scan(outbox) == (0, 0, 1, "")


@pytest.mark.parametrize(
    ("status", "charge", "sentence"),
    [
        ("charge_queued", "succeeded", "is charge queued here, but its charge succeeded."),
        ("charge_failed", "succeeded", "is charge failed here, but its charge succeeded."),
        ("paid", "rejected", "is paid here, but its charge is rejected."),
        ("charge_queued", None, "is charge queued here, but its charge is none."),
    ],
)
def test_an_invoice_that_stands_otherwise_than_its_charge(
    owner: Any, web: Any, outbox: Any, broken: Callable[..., None], status: str, charge: str | None, sentence: str
) -> None:
    invoice = makers.make_invoice(owner, customer_id=makers.make_customer(owner), status=status)
    if charge:
        broken(CHARGE, charge, invoice)
    if charge == "succeeded":
        broken("UPDATE public.outbox_message SET outcome_source = 'response', sends = 1")
    if status == "paid":
        makers.make_payment(owner, invoice_id=invoice)
    case = scanned.found_once(outbox, object_=f"invoice:{invoice}")
    assert scanned.asked(outbox)[0][3] == f"Invoice {invoice} {sentence}"
    assert choose(web, case, "compensate", text="Put right by hand.").decision
    assert scan(outbox) == CLEAN
