"""The test payment methods: what each does when it is charged and when it is refunded."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from sandbox.stripe.exchange import Json


@dataclass(frozen=True, kw_only=True)
class Decline:
    """A bank's no, in Stripe's words."""

    code: str
    decline_code: str
    message: str = "Your card was declined."
    advice: str | None = "try_again_later"

    def error(self) -> Json:
        """Return the fields that a 402 and `last_payment_error` share."""
        words = {"code": self.code, "decline_code": self.decline_code, "message": self.message}
        return words | ({"advice_code": self.advice} if self.advice else {})


@dataclass(frozen=True, kw_only=True)
class Method:
    """A test card or bank account. `settles`: how a charge ends; `refunds`: how a refund to it goes."""

    name: str
    type: Literal["card", "us_bank_account"] = "card"
    brand: str = "visa"
    last4: str
    decline: Decline | None = None
    authentication: bool = False
    settles: Literal["at once", "succeeded", "failed", "never"] = "at once"
    refunds: Literal["succeeded", "pending", "failing"] = "succeeded"
    disputed: bool = False

    @property
    def fingerprint(self) -> str:
        """Return the name of the number behind it: the same for every copy of the card."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:16]

    def details(self) -> Json:
        """Return what a payment method or a charge shows of it."""
        if self.type == "us_bank_account":
            bank = {"bank_name": "STRIPE TEST BANK", "account_type": "checking", "routing_number": "110000000"}
            return bank | {"account_holder_type": "individual", "fingerprint": self.fingerprint, "last4": self.last4}
        card = {"brand": self.brand, "country": "US", "exp_month": 12, "exp_year": 2034, "funding": "credit"}
        return card | {"fingerprint": self.fingerprint, "last4": self.last4}


AUTHENTICATION = Decline(
    code="authentication_required",
    decline_code="authentication_required",
    message="Your card was declined. This transaction requires authentication.",
    advice=None,
)
NOT_AUTHENTICATED = Decline(
    code="payment_intent_authentication_failure",
    decline_code="authentication_required",
    message="The provided PaymentMethod has failed authentication.",
    advice=None,
)
GENERIC = Decline(code="card_declined", decline_code="generic_decline")
NO_FUNDS = Decline(code="card_declined", decline_code="insufficient_funds", message="Your card has insufficient funds.")
LOST = Decline(code="card_declined", decline_code="lost_card", advice="do_not_try_again")
STOLEN = Decline(code="card_declined", decline_code="stolen_card", advice="do_not_try_again")
EXPIRED = Decline(code="expired_card", decline_code="expired_card", message="Your card has expired.", advice="do_not_try_again")
WRONG_CVC = Decline(
    code="incorrect_cvc",
    decline_code="incorrect_cvc",
    message="Your card's security code is incorrect.",
    advice="confirm_card_data",
)
BROKEN = Decline(
    code="processing_error",
    decline_code="processing_error",
    message="An error occurred while processing your card. Try again in a little bit.",
)


def bank(
    outcome: str,
    *,
    last4: str,
    settles: Literal["succeeded", "failed", "never"],
    decline: Decline | None = None,
    disputed: bool = False,
) -> Method:
    """Return a test bank account: its charges are `processing` first."""
    name = f"pm_usBankAccount_{outcome}"
    return Method(name=name, type="us_bank_account", last4=last4, settles=settles, decline=decline, disputed=disputed)


def bounced(code: str, message: str) -> Decline:
    """Return a bank's no to a debit that was already under way."""
    return Decline(code=code, decline_code=code, message=message, advice=None)


METHODS = {
    method.name: method
    for method in (
        Method(name="pm_card_visa", last4="4242"),
        Method(name="pm_card_visa_debit", last4="5556"),
        Method(name="pm_card_mastercard", brand="mastercard", last4="4444"),
        Method(name="pm_card_amex", brand="amex", last4="8431"),
        Method(name="pm_card_chargeCustomerFail", last4="0341", decline=GENERIC),
        Method(name="pm_card_visa_chargeDeclined", last4="0002", decline=GENERIC),
        Method(name="pm_card_visa_chargeDeclinedInsufficientFunds", last4="9995", decline=NO_FUNDS),
        Method(name="pm_card_visa_chargeDeclinedLostCard", last4="9987", decline=LOST),
        Method(name="pm_card_visa_chargeDeclinedStolenCard", last4="9979", decline=STOLEN),
        Method(name="pm_card_chargeDeclinedExpiredCard", last4="0069", decline=EXPIRED),
        Method(name="pm_card_chargeDeclinedIncorrectCvc", last4="0127", decline=WRONG_CVC),
        Method(name="pm_card_chargeDeclinedProcessingError", last4="0119", decline=BROKEN),
        Method(name="pm_card_authenticationRequired", last4="3184", authentication=True),
        Method(name="pm_card_pendingRefund", last4="7726", refunds="pending"),
        Method(name="pm_card_refundFail", last4="5126", refunds="failing"),
        Method(name="pm_card_createDispute", last4="0259", disputed=True),
        # Stripe has no card that stays in processing: these three are ours, for callers that charge cards only.
        Method(name="pm_card_sandboxProcessing", last4="7001", settles="succeeded"),
        Method(name="pm_card_sandboxProcessingFails", last4="7002", settles="failed", decline=NO_FUNDS),
        Method(name="pm_card_sandboxProcessingStays", last4="7003", settles="never"),
        bank("success", last4="6789", settles="succeeded"),
        bank("processing", last4="0009", settles="never"),
        bank("dispute", last4="7771", settles="succeeded", disputed=True),
        bank(
            "insufficientFunds",
            last4="2227",
            settles="failed",
            decline=bounced("insufficient_funds", "The account has insufficient funds."),
        ),
        bank("accountClosed", last4="1113", settles="failed", decline=bounced("account_closed", "The account is closed.")),
        bank(
            "debitNotAuthorized",
            last4="3335",
            settles="failed",
            decline=bounced("debit_not_authorized", "The debit was not authorised."),
        ),
    )
}
BY_FINGERPRINT = {method.fingerprint: method for method in METHODS.values()}


def behind(details: Json) -> Method:
    """Return the test method that a payment method or a charge's `payment_method_details` shows."""
    return BY_FINGERPRINT[details[details["type"]]["fingerprint"]]
