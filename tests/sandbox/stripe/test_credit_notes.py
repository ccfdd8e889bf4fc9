"""Invoices of the provider's and their credit notes: what adds up, what stands, and that no money moves for them."""

from typing import Any

import pytest
import stripe

from tests.sandbox.stripe.conftest import Shop
from tests.sandbox.stripe.process import Sandbox


class Books:
    """A customer's invoices and notes."""

    def __init__(self, shop: Shop) -> None:
        self.shop, self.v1 = shop, shop.v1

    def open(self, amount: int = 1000) -> stripe.Invoice:
        """Return a finalised invoice of one line."""
        invoice = self.v1.invoices.create({"customer": self.shop.customer, "currency": "eur"})
        line: Any = {"customer": self.shop.customer, "invoice": invoice.id, "amount": amount, "currency": "eur"}
        self.v1.invoice_items.create(line)
        return self.v1.invoices.finalize_invoice(str(invoice.id))

    def paid(self, amount: int = 1000) -> tuple[stripe.Invoice, stripe.PaymentIntent]:
        """Return an invoice that an intent has paid, and the intent."""
        invoice, intent = self.open(amount), self.shop.charge(amount=amount)
        return self.v1.invoices.attach_payment(str(invoice.id), {"payment_intent": intent.id}), intent

    def note(self, invoice: stripe.Invoice, amount: int, *, key: str = "", **more: Any) -> stripe.CreditNote:
        """Issue a note."""
        options: Any = {"idempotency_key": key} if key else {}
        return self.v1.credit_notes.create({"invoice": str(invoice.id), "amount": amount, **more}, options)

    def refused(self, invoice: stripe.Invoice, amount: int, **more: Any) -> str:
        """Return why a note is refused, and check that it is not there."""
        before = len(self.notes(invoice))
        with pytest.raises(stripe.InvalidRequestError) as error:
            self.note(invoice, amount, **more)
        assert len(self.notes(invoice)) == before
        return str(error.value.user_message)

    def notes(self, invoice: stripe.Invoice) -> list[stripe.CreditNote]:
        """Return the invoice's notes, newest first."""
        return self.v1.credit_notes.list({"invoice": str(invoice.id)}).data

    def read(self, invoice: stripe.Invoice) -> stripe.Invoice:
        """Return an invoice as it is now."""
        return self.v1.invoices.retrieve(str(invoice.id))


@pytest.fixture
def books(shop: Shop) -> Books:
    """Return the books of a new customer."""
    return Books(shop)


def test_an_invoice_is_drafted_finalised_and_paid_by_an_intent(books: Books) -> None:
    invoice, intent = books.paid()

    assert (invoice.status, invoice.total, invoice.amount_paid, invoice.amount_remaining) == ("paid", 1000, 1000, 0)
    assert invoice.payments is not None
    assert [one.payment.payment_intent for one in invoice.payments.data] == [intent.id]
    for again in (books.open(), invoice):
        with pytest.raises(stripe.InvalidRequestError):
            books.v1.invoices.attach_payment(str(again.id), {"payment_intent": intent.id})


def test_an_invoice_may_be_paid_elsewhere(books: Books) -> None:
    invoice = books.v1.invoices.pay(str(books.open().id), {"paid_out_of_band": True})

    assert (invoice.status, invoice.amount_paid) == ("paid", 1000)
    assert books.v1.invoices.list({"status": "paid", "customer": books.shop.customer}).data[0].id == invoice.id
    assert books.note(invoice, 300, out_of_band_amount=300).status == "issued"


def test_a_note_links_a_refund_and_moves_nothing(books: Books, sandbox: Sandbox, account: str) -> None:
    invoice, intent = books.paid()
    refund = books.shop.refund(intent, amount=400)
    moved = sandbox.movements(account)
    linked = {"refund": refund.id, "amount_refunded": 400}

    note = books.note(invoice, 400, key="note", refunds=[linked], metadata={"for": "a test"}, email_type="none")

    assert (note.status, note.type, note.amount, note.post_payment_amount) == ("issued", "post_payment", 400, 400)
    assert [(one.refund, one.amount_refunded) for one in note.refunds] == [(refund.id, 400)]
    assert books.note(invoice, 400, key="note", refunds=[linked], metadata={"for": "a test"}, email_type="none").id == note.id
    assert [one.id for one in books.notes(invoice)] == [books.v1.credit_notes.retrieve(note.id).id] == [note.id]
    assert books.read(invoice).post_payment_credit_notes_amount == 400
    assert sandbox.movements(account) == moved
    events = books.v1.events.list({"types": ["credit_note.created", "invoice.paid"]}).data
    assert [event.type for event in events] == ["credit_note.created", "invoice.paid"]


def test_what_a_note_names_has_to_add_up(books: Books) -> None:
    invoice, intent = books.paid()
    refund = books.shop.refund(intent, amount=400)
    linked = [{"refund": refund.id}]

    assert "must equal" in books.refused(invoice, 300, refunds=linked)
    assert "must equal" in books.refused(invoice, 500, refunds=linked)
    assert "must equal" in books.refused(invoice, 500)
    assert books.note(invoice, 500, refunds=linked, out_of_band_amount=100).out_of_band_amount == 100


def test_refunds_without_a_note_leave_less_to_credit(books: Books) -> None:
    invoice, intent = books.paid()
    books.shop.refund(intent, amount=400)
    second = books.shop.refund(intent, amount=100)

    assert "greater than what can be credited" in books.refused(invoice, 601, out_of_band_amount=601)
    assert books.note(invoice, 100, refunds=[{"refund": second.id}]).amount == 100
    assert "greater than what can be credited" in books.refused(invoice, 501, out_of_band_amount=501)
    assert books.note(invoice, 500, out_of_band_amount=500).amount == 500


def test_a_refund_is_in_one_note_and_of_a_payment_of_the_invoice(books: Books) -> None:
    invoice, intent = books.paid()
    refund, other = books.shop.refund(intent, amount=400), books.shop.refund(books.shop.charge(), amount=400)
    books.note(invoice, 400, refunds=[{"refund": refund.id}])

    assert "is in no credit note" in books.refused(invoice, 400, refunds=[{"refund": refund.id}])
    assert "not of a payment of this invoice" in books.refused(invoice, 400, refunds=[{"refund": other.id}])


def test_the_note_of_a_refund_that_fails_afterwards_stands(books: Books, sandbox: Sandbox) -> None:
    invoice, intent = books.paid()
    refund = books.shop.refund(intent)
    note = books.note(invoice, 1000, refunds=[{"refund": refund.id}])
    sandbox.control("settle", {"id": refund.id, "status": "failed"})

    with pytest.raises(stripe.InvalidRequestError, match="only void issued credit notes of open invoices"):
        books.v1.credit_notes.void_credit_note(note.id)

    assert books.v1.credit_notes.retrieve(note.id).status == "issued"
    again = books.shop.refund(intent)
    assert "greater than what can be credited" in books.refused(invoice, 1000, refunds=[{"refund": again.id}])


def test_a_note_of_an_open_invoice_lowers_what_is_due_and_can_be_taken_back(books: Books) -> None:
    invoice = books.open()
    note = books.note(invoice, 400)
    assert (note.type, books.read(invoice).amount_remaining) == ("pre_payment", 600)

    assert books.v1.credit_notes.void_credit_note(note.id).status == "void"

    assert books.read(invoice).amount_remaining == 1000
    books.note(invoice, 1000)
    assert books.read(invoice).status == "paid"


def test_a_draft_has_no_notes(books: Books) -> None:
    invoice = books.v1.invoices.create({"customer": books.shop.customer, "currency": "eur"})

    assert "open or paid" in books.refused(invoice, 100)
