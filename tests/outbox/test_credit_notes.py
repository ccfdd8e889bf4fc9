"""Credit notes: a refund that went out of a payment of an invoice at the provider is credited there, once; no money moves."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.test import Client

from billing import credit_notes, review_panel
from ledger.refusals import Refusal
from outbox import sweeps, webhooks
from outbox.gateway import get
from tests.outbox.asking import asked_about, carry_out, done
from tests.outbox.billed import link
from tests.outbox.desk import Desk, Row
from tests.outbox.events import stored
from tests.outbox.test_late import books as books  # checks every invariant of billing and of the outbox at the end
from tests.waiting import until

NOTES = "/v1/credit_notes"
WAITS = """
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database() AND usename = 'backstop_outbox' AND wait_event_type = 'Lock'
"""


def invoiced(desk: Desk, amount_minor: int = 48_000) -> int:
    """Return an invoice that is paid, whose payment has paid an invoice at the provider too."""
    invoice = desk.paid(amount_minor)
    link(desk.owner, desk.provider, invoice=invoice)
    return invoice


def refunded(desk: Desk, invoice: int, amount_minor: int = 10_000) -> Row:
    """Return the message of a refund that went out; its note waits."""
    message = desk.refund(invoice, amount_minor)
    desk.deliver_once()
    assert desk.refund_status(message) == "confirmed"
    return desk.read(message)


def note_of(desk: Desk, refund: Row) -> Row:
    """Return the message of a refund's note."""
    return desk.one(
        "SELECT * FROM public.outbox_message WHERE dedupe_key = %s", f"credit_note:{refund['payload']['refund_id']}:1"
    )


def kept(desk: Desk, refund: Row) -> str | None:
    """Return which note the books have of a refund."""
    row = desk.one("SELECT provider_credit_note_id FROM public.billing_refund WHERE id = %s", refund["payload"]["refund_id"])
    found: str | None = row["provider_credit_note_id"]
    return found


def tell(desk: Desk, message: Row, kind: str, *, object_id: str, status: str) -> str:
    """Let the provider's event about an object come, and return what became of it."""
    about = {"id": object_id, "metadata": {"backstop_uid": str(message["uid"])}, "status": status}
    stored(desk.owner, kind=kind, about=about, event_id=f"evt_{kind}_{object_id}")
    webhooks.process_due(desk.pool, go_on=lambda: True)
    return str(
        desk.one("SELECT outcome FROM public.outbox_webhook_event WHERE object_id = %s AND type = %s", object_id, kind)["outcome"]
    )


@pytest.mark.usefixtures("books")
def test_a_refund_is_credited_on_the_invoice_that_its_payment_paid(desk: Desk, admin: Client) -> None:
    refund = refunded(desk, invoiced(desk))
    waiting = note_of(desk, refund)
    names = ("topic", "aggregate", "state", "subject", "thread", "ai_message_id", "call_index")
    assert [waiting[name] for name in names] == [
        "payment.credit_note",
        refund["aggregate"],
        "ready",
        *(refund[n] for n in names[3:]),
    ]

    desk.deliver()

    note = note_of(desk, refund)
    assert (note["state"], note["provider_status"], kept(desk, refund)) == ("succeeded", "issued", note["provider_id"])
    (made,) = desk.provider.objects("credit_note", note["uid"])
    invoice = desk.one(
        "SELECT provider_invoice_id AS id FROM public.billing_payment WHERE id = %s", refund["payload"]["payment_id"]
    )
    assert (made["id"], made["invoice"], made["amount"]) == (note["provider_id"], invoice["id"], 10_000)
    linked = {"type": "refund", "refund": refund["provider_id"], "amount_refunded": 10_000, "payment_record_refund": None}
    assert made["refunds"] == [linked]
    assert desk.provider.movements(note["uid"]) == []
    assert desk.provider.movements(refund["uid"]) == [-10_000]
    page = admin.get(f"/outbox/{note['id']}/").content.decode()
    assert f"Credit note of €100.00 for the refund of invoice {refund['payload']['invoice_id']}" in page
    assert note["provider_id"] in page
    calls = [{"arguments": {"invoice_id": refund["payload"]["invoice_id"]}}]
    (section, *_) = review_panel.context(desk.customer, calls=calls, changes=None)["sections"]
    assert [line.value for line in section.lines][-2:] == [invoice["id"], note["provider_id"]]


@pytest.mark.usefixtures("books")
def test_a_refund_of_our_own_invoice_alone_has_no_note(desk: Desk) -> None:
    refund = refunded(desk, desk.paid())
    assert not desk.deliver()
    assert desk.newest()["id"] == refund["id"]


@pytest.mark.usefixtures("books")
def test_a_refund_that_is_refused_has_no_note(desk: Desk) -> None:
    invoice = invoiced(desk)
    payment = desk.one("SELECT provider_payment_id AS id FROM public.billing_payment WHERE invoice_id = %s", invoice)["id"]
    desk.provider.create("/v1/refunds", payment_intent=payment)  # by somebody else
    refund = desk.refund(invoice)
    desk.deliver()
    assert (desk.refund_status(refund), desk.newest()["id"]) == ("refused", refund["id"])


@pytest.mark.usefixtures("books")
def test_each_refund_has_its_own_note_and_the_next_refund_waits_for_it(desk: Desk) -> None:
    invoice = invoiced(desk)
    first = refunded(desk, invoice)
    second = desk.refund(invoice, 38_000)
    assert desk.read(second)["blocked"]

    desk.deliver()

    found = [note_of(desk, one) for one in (first, second)]
    assert [(one["state"], one["steps"][0]["params"]["amount"]) for one in found] == [
        ("succeeded", 10_000),
        ("succeeded", 38_000),
    ]


@pytest.mark.usefixtures("books")
def test_what_was_refunded_before_an_invoice_is_linked_is_credited_then(desk: Desk) -> None:
    invoice = desk.paid()
    refund = refunded(desk, invoice)

    linked = link(desk.owner, desk.provider, invoice=invoice)

    desk.deliver()
    assert (note_of(desk, refund)["state"], kept(desk, refund)) == ("succeeded", note_of(desk, refund)["provider_id"])
    payment = desk.one("SELECT provider_payment_id AS id FROM public.billing_payment WHERE invoice_id = %s", invoice)["id"]
    with pytest.raises(Refusal, match="at the provider already"):
        credit_notes.link(desk.owner, provider_payment_id=payment, provider_invoice_id=linked)


@pytest.mark.usefixtures("books")
def test_an_invoice_that_is_linked_while_the_refund_settles_is_seen(desk: Desk, superuser: Any) -> None:
    invoice = desk.paid()
    refund = desk.refund(invoice)

    def waits() -> bool:
        return bool(superuser.execute(WAITS).fetchone())

    with ThreadPoolExecutor(1) as pool:
        with desk.owner.transaction():
            link(desk.owner, desk.provider, invoice=invoice)
            settling = pool.submit(desk.deliver_once)
            until(waits, what="the settling worker")
        settling.result(10)

    assert (desk.refund_status(refund), note_of(desk, refund)["state"]) == ("confirmed", "ready")
    desk.deliver()


@pytest.mark.usefixtures("books")
@pytest.mark.parametrize("mode", ["drop", "500", "garbage"])
def test_a_note_whose_answer_is_lost_is_looked_up_by_its_invoice_and_never_made_twice(desk: Desk, mode: str) -> None:
    refund = refunded(desk, invoiced(desk))
    desk.provider.fault("after", mode, path=NOTES)
    desk.deliver_once()
    note = note_of(desk, refund)
    assert (note["state"], kept(desk, refund)) == ("uncertain", None)

    desk.deliver_all(note)

    assert desk.read(note)["state"] == "succeeded"
    assert desk.deliveries(note)[-1] == ("lookup", "succeeded")
    assert [one["id"] for one in desk.provider.objects("credit_note", note["uid"])] == [kept(desk, refund)]


@pytest.mark.usefixtures("books")
def test_a_note_that_never_arrived_is_sent_again_with_its_key_and_after_twenty_hours_a_person_is_asked(desk: Desk) -> None:
    invoice = invoiced(desk)
    first = refunded(desk, invoice)
    desk.provider.fault("before", "drop", path=NOTES)
    desk.deliver_once()
    desk.deliver_all(note_of(desk, first))
    assert [outcome for _, outcome in desk.deliveries(note_of(desk, first))] == ["uncertain", "absent", "succeeded"]

    second = refunded(desk, invoice)
    desk.provider.fault("before", "drop", path=NOTES)
    desk.deliver_once()
    note = note_of(desk, second)
    desk.later(note, 21)
    desk.deliver_all(note)

    assert (desk.read(note)["state"], desk.provider.objects("credit_note", note["uid"])) == ("dead", [])
    assert asked_about(desk, note) == [("unknown_outcome", "open")]
    assert desk.refund_status(second) == "confirmed"


@pytest.mark.usefixtures("books")
def test_a_note_that_is_refused_is_put_before_a_person_and_the_refund_stays(desk: Desk, admin: Client) -> None:
    invoice = invoiced(desk)
    payment = desk.one("SELECT * FROM public.billing_payment WHERE invoice_id = %s", invoice)
    desk.provider.create(NOTES, invoice=payment["provider_invoice_id"], amount=48_000, out_of_band_amount=48_000)
    refund = refunded(desk, invoice)

    desk.deliver()

    note = note_of(desk, refund)
    assert (note["state"], desk.refund_status(refund), kept(desk, refund)) == ("rejected", "confirmed", None)
    assert asked_about(desk, note) == [("rejected_payment", "open")]
    asked = desk.one("SELECT payload FROM public.escalations_escalation WHERE object = %s", f"message:{note['id']}")["payload"]
    stands = "The refund stands, and the invoice at the provider does not show it."
    assert asked["reason"] == f"The payment provider refused it: invalid request. {stands}"
    assert stands in admin.get(f"/outbox/{note['id']}/").content.decode()


@pytest.mark.usefixtures("books")
def test_the_event_of_a_note_settles_it_before_its_answer_and_says_nothing_new_afterwards(desk: Desk) -> None:
    refund = refunded(desk, invoiced(desk))
    desk.provider.fault("after", "drop", path=NOTES)
    desk.deliver_once()
    note = note_of(desk, refund)
    made = desk.provider.objects("credit_note", note["uid"])[0]["id"]

    assert tell(desk, note, "credit_note.created", object_id=made, status="issued") == "settled: succeeded"

    assert (kept(desk, refund), desk.read(note)["outcome_source"]) == (made, "webhook")
    desk.owner.execute("DELETE FROM public.outbox_webhook_event")
    assert tell(desk, note, "credit_note.created", object_id=made, status="issued") == "already succeeded"


@pytest.mark.usefixtures("books")
def test_the_note_of_a_refund_that_fails_afterwards_stands_and_the_question_says_so(desk: Desk) -> None:
    refund = refunded(desk, invoiced(desk))
    desk.deliver()
    note = note_of(desk, refund)
    desk.provider.settle(refund["provider_id"], "failed")

    assert tell(desk, refund, "refund.failed", object_id=refund["provider_id"], status="failed") == "taken back: failed"

    (question,) = desk.owner.execute("SELECT object, payload ->> 'reason' FROM public.escalations_escalation").fetchall()
    invoice = note["payload"]["provider_invoice_id"]
    assert question[0] == f"message:{refund['id']}"
    assert question[1].startswith("The refund of €100.00 was confirmed, but failed afterwards")
    assert question[1].endswith(f"Credit note {note['provider_id']} of invoice {invoice} stands. {credit_notes.TO_DO}")
    assert (desk.refund_status(refund), kept(desk, refund)) == ("reversed", note["provider_id"])


@pytest.mark.usefixtures("books")
def test_a_refund_that_fails_before_its_note_has_left_has_none(desk: Desk) -> None:
    refund = refunded(desk, invoiced(desk))
    desk.provider.settle(refund["provider_id"], "failed")
    tell(desk, refund, "refund.failed", object_id=refund["provider_id"], status="failed")

    desk.deliver()

    note = note_of(desk, refund)
    assert (note["state"], desk.provider.objects("credit_note", note["uid"])) == ("cancelled", [])
    (question,) = desk.owner.execute("SELECT payload ->> 'reason' FROM public.escalations_escalation").fetchall()
    assert "redit note" not in question[0]


@pytest.mark.usefixtures("books")
def test_a_refund_that_fails_while_its_note_is_under_way_asks_about_both(desk: Desk) -> None:
    refund = refunded(desk, invoiced(desk))
    desk.provider.fault("after", "drop", path=NOTES)
    desk.deliver_once()
    note = note_of(desk, refund)
    desk.provider.settle(refund["provider_id"], "failed")
    tell(desk, refund, "refund.failed", object_id=refund["provider_id"], status="failed")

    desk.deliver_all(note)

    asked = dict(desk.owner.execute("SELECT object, payload ->> 'reason' FROM public.escalations_escalation").fetchall())
    assert asked[f"message:{refund['id']}"].endswith(
        "A credit note for it is on its way, and a person will be asked if it arrives."
    )
    assert asked[f"message:{note['id']}"].startswith(f"The refund came back. Credit note {kept(desk, refund)} of invoice in_")


@pytest.mark.usefixtures("books")
def test_a_sweep_holds_a_note_against_its_message(desk: Desk, web: Any) -> None:
    refund = refunded(desk, invoiced(desk))
    note = note_of(desk, refund)
    desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 1 WHERE id = %s", (note["id"],))
    desk.provider.fault("after", "drop", path=NOTES)
    desk.deliver_once()
    assert desk.read(note)["state"] == "dead"
    assert done(desk, web, note, "compensate") == "noted"
    started = desk.one("SELECT now() - interval '1 hour' AS at")["at"]

    def strays() -> list[tuple[str, int | None]]:
        found = sweeps.sweep(desk.owner, lambda path, params: get(path, params), since=started)
        return [(one.kind, one.message) for one in found if one.uid == str(note["uid"])]

    assert strays() == []  # put right by hand
    desk.owner.execute("UPDATE public.outbox_message SET refusal = 'never_arrived' WHERE id = %s", (note["id"],))
    assert strays() == [("contradicts", note["id"])]
    assert done(desk, web, note, "adopt") == "adopted: succeeded"
    assert (strays(), carry_out(desk)) == ([], 0)
    assert kept(desk, refund) is not None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Charged twice in October", "duplicate"),
        ("double-booked meeting, customer cancelled", "order_change"),
        ("duplicate charge", "duplicate"),
        ("The outage of 3 November", "product_unsatisfactory"),
        ("A fraudulent order", "order_change"),
        ("Goodwill", None),
    ],
)
def test_our_reason_is_the_providers_where_it_says_as_much(text: str, word: str | None) -> None:
    assert credit_notes.reason(text) == word
