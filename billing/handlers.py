"""The outbox topics of billing: what is sent for a charge, a refund and a credit note, and what each outcome does."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg import Connection

from billing import credit_notes, money, refunds, repairs, settlements
from outbox.handlers import Handler, Step
from outbox.messages import Cause
from outbox.outcomes import Outcome

Payload = Mapping[str, Any]


def charge_steps(charge: Payload, uid: UUID) -> list[Step]:
    """Return create and confirm. Creating moves no money, and a PaymentIntent takes it once at most, so either may be renewed."""
    amount, currency = money.to_provider(charge["amount_minor"], charge["currency"])
    create = {
        "amount": amount,
        "currency": currency,
        "customer": charge["provider_customer_id"],
        "payment_method": charge["provider_payment_method"],
        "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},  # nobody is there to be redirected
        "metadata": {"backstop_uid": str(uid), "invoice": str(charge["invoice_id"])},
    }
    return [
        Step(name="create", path="/v1/payment_intents", params=create, renewable=True),
        Step(name="confirm", path="/v1/payment_intents/{provider_id}/confirm", params={"off_session": True}, renewable=True),
    ]


def refund_steps(refund: Payload, uid: UUID) -> list[Step]:
    """Return the one request of a refund. It moves money each time it is executed: its key is never renewed."""
    amount, _ = money.to_provider(refund["amount_minor"], refund["currency"])
    params = {
        "payment_intent": refund["provider_payment_id"],
        "amount": amount,
        "metadata": {"backstop_uid": str(uid), "refund": str(refund["refund_id"])},
    }
    return [Step(name="refund", path="/v1/refunds", params=params)]


def credit_note_steps(note: Payload, uid: UUID) -> list[Step]:
    """Return the one request of a credit note. It links the refund, so that it moves nothing; nobody is sent an e-mail."""
    amount, _ = money.to_provider(note["amount_minor"], note["currency"])
    params = {
        "invoice": note["provider_invoice_id"],
        "amount": amount,
        "refunds": [{"refund": note["provider_refund_id"], "amount_refunded": amount}],
        "email_type": "none",
        "metadata": {"backstop_uid": str(uid), "refund": str(note["refund_id"])},
    }
    reason = credit_notes.reason(note["reason"])
    return [Step(name="credit_note", path="/v1/credit_notes", params=params | ({"reason": reason} if reason else {}))]


def settle_charge(conn: Connection[Any], *, message: Mapping[str, Any], outcome: Outcome) -> str | None:
    """Apply a charge's final outcome to its invoice."""
    charge = message["payload"]
    if outcome.kind == "succeeded":
        attempt = int(message["dedupe_key"].rpartition(":")[2])  # the key names the invoice's attempt
        return settlements.charge_succeeded(conn, charge=charge, attempt=attempt, provider_payment_id=message["provider_id"])
    if outcome.kind == "rejected":
        settlements.charge_rejected(conn, charge=charge)
    elif outcome.kind == "cancelled":
        settlements.charge_withdrawn(conn, charge=charge)
    return None


def return_charge(conn: Connection[Any], *, message: Mapping[str, Any], reason: str) -> str:
    """Queue the refund of a charge that pays nothing; raise Refusal."""
    card = message["payload"].get("card_last4")
    made = refunds.return_stray(conn, provider_payment_id=message["provider_id"], card_last4=card, reason=reason)
    return f"refund {made['refund_id']} of {money.format(made['left_minor'], made['currency'])} is queued"


def settle_refund(conn: Connection[Any], *, message: Mapping[str, Any], outcome: Outcome) -> str | None:
    """Apply a refund's final outcome to the refund and its payment."""
    refund = message["payload"]
    if outcome.kind == "succeeded":
        concern = settlements.refund_succeeded(conn, refund=refund, provider_refund_id=message["provider_id"])
        credit_notes.promise(conn, refund=refund["refund_id"], cause=_cause(message))
        return concern
    if outcome.kind == "rejected":
        settlements.refund_rejected(conn, refund=refund, provider_refund_id=message["provider_id"])
    elif outcome.kind == "cancelled":
        settlements.refund_withdrawn(conn, refund=refund)
    return None


def reverse_refund(conn: Connection[Any], *, message: Mapping[str, Any], outcome: Outcome) -> str | None:
    """Enter that a confirmed refund failed afterwards, and came back."""
    refund, why = message["payload"], outcome.refusal or outcome.provider_status or "failed"
    concern = settlements.refund_reversed(conn, refund=refund, reason=why)
    return concern and f"{concern} {credit_notes.left_behind(conn, refund=refund['refund_id'])}".strip()


def settle_credit_note(conn: Connection[Any], *, message: Mapping[str, Any], outcome: Outcome) -> str | None:
    """Keep which note the refund has; without one the refund stays as it is."""
    if outcome.kind == "succeeded":
        return credit_notes.issued(conn, note=message["payload"], provider_note_id=message["provider_id"])
    return None


def _cause(message: Mapping[str, Any]) -> Cause:
    """Return the call that a message comes from, for what follows from it."""
    return Cause(**{name: message[name] for name in ("thread", "ai_message_id", "call_index", "subject")})


def charge_sentence(charge: Payload) -> str:
    """Return the charge in words."""
    return f"Charge {_amount(charge)} to {_card(charge)} for invoice {charge['invoice_id']}"


def refund_sentence(refund: Payload) -> str:
    """Return the refund in words."""
    return f"Refund {_amount(refund)} to {_card(refund)} for invoice {refund['invoice_id']}"


def credit_note_sentence(note: Payload) -> str:
    """Return the credit note in words."""
    return f"Credit note of {_amount(note)} for the refund of invoice {note['invoice_id']}"


def _amount(payload: Payload) -> str:
    return money.format(payload["amount_minor"], payload["currency"])


def _card(payload: Payload) -> str:
    return f"the card ending in {payload['card_last4']}" if payload.get("card_last4") else "the card on file"


HANDLERS = (
    Handler(
        topic="payment.charge",
        destination="stripe",
        repeat="keyed",
        steps=charge_steps,
        settle=settle_charge,
        reopen=repairs.reopen_charge,
        give_back=return_charge,
        owed=repairs.charge_is_owed,
        refusal_asks_person=True,
        sentence=charge_sentence,
    ),
    Handler(
        topic="payment.refund",
        destination="stripe",
        repeat="keyed",
        steps=refund_steps,
        settle=settle_refund,
        reopen=repairs.reopen_refund,
        take_back=reverse_refund,
        refusal_asks_person=True,
        sentence=refund_sentence,
    ),
    Handler(
        topic=credit_notes.TOPIC,
        destination="stripe",
        repeat="keyed",
        steps=credit_note_steps,
        settle=settle_credit_note,
        wanted=credit_notes.is_wanted,
        asked_for=False,  # a refund brings it about
        refusal_asks_person=True,
        if_refused="The refund stands, and the invoice at the provider does not show it.",
        sentence=credit_note_sentence,
    ),
)
