"""In which way books follow their message: every combination has one, stands already, or says in a sentence why not."""

from itertools import product
from typing import Any

import pytest

from billing.models import Invoice
from billing.models import Refund as RefundRow
from billing.repairs import Charge, Refund
from ledger.refusals import Refusal
from outbox.transitions import STATES

SETTLES = {"succeeded": "paid", "rejected": "charge_failed", "cancelled": "draft"}
STRAYS = (None, False, True)  # the payment of this very charge: none, it pays, or it is owed to nobody
REFUNDED = {"succeeded": "confirmed", "rejected": "refused", "cancelled": "withdrawn"}


def charge(**changes: Any) -> Charge:
    same: dict[str, Any] = {"invoice": 1, "currency": "EUR", "due_minor": 100, "named": True, "last": True, "charged_minor": 100}
    return Charge(**(same | {"stray": None, "payment": None} | changes))


def refund(**changes: Any) -> Refund:
    same: dict[str, Any] = {"refund": 1, "currency": "EUR", "payment": 1, "amount_minor": 10, "provider_status": None}
    return Refund(**(same | {"paid_minor": 100, "others_minor": 0, "others_queued": False} | changes))


def way(books: Charge | Refund) -> str:
    """Return the way, or "" where there is none but a sentence."""
    try:
        return books.way()
    except Refusal as refusal:
        assert refusal.sentence.endswith(".") and refusal.sentence.count(". ") == 0, refusal.sentence
        return ""


@pytest.mark.parametrize("state", STATES)
def test_an_invoice_stands_settles_reopens_or_says_why_not(state: str) -> None:
    for status, last, stray, other, due in product(Invoice.Status.values, (True, False), STRAYS, (None, 7), (100, 0)):
        payment = 3 if stray is False else other
        found = way(charge(state=state, status=status, last=last, stray=stray, payment=payment, due_minor=due))
        if found == "reopen":  # a payment stays, what is void stays, and only the last charge speaks for its invoice
            assert (payment, last, status != "void") == (None, True, True)
        if status == SETTLES.get(state, "charge_queued") and last and payment is None and stray is None and state != "succeeded":
            assert found == "stand"
        if state == "succeeded" and (stray or (stray is False and status == "paid" and due == 100)):
            assert found == "stand"


@pytest.mark.parametrize("state", STATES)
def test_a_refund_stands_settles_reopens_or_says_why_not(state: str) -> None:
    for status, taken_back, others, queued in product(RefundRow.Status.values, (True, False), (0, 95), (True, False)):
        back = taken_back and state == "succeeded"
        found = way(
            refund(
                state=state,
                status=status,
                provider_status="failed" if back else "succeeded",
                others_minor=others,
                others_queued=queued,
            )
        )
        should = "reversed" if back else REFUNDED.get(state, "queued")
        assert (found == "stand") is (status == should)
        if status == "reversed" and not back:  # no reversal is ever taken out of the books
            assert found == ""
        if found == "reopen":  # one is under way of each payment
            assert not queued
