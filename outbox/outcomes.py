"""What an answer of the provider means for a message. Pure: no I/O, no clock, no SDK."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Kind = Literal["succeeded", "rejected", "accepted", "advanced", "retry", "uncertain", "dead", "park", "cancelled"]
PUT_RIGHT = "put_right_elsewhere"  # a person's refusal of what may have moved: they have put the money right by hand
FINAL = ("succeeded", "rejected", "cancelled")
SEEN = (
    *("id", "object", "status", "amount", "amount_received", "currency", "customer", "payment_intent", "invoice"),
    *("latest_charge", "cancellation_reason", "failure_reason", "created", "livemode", "metadata"),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one call, of one look-up, or of a person's request.

    succeeded: final, the money moved · rejected: final, it did not · accepted: the provider has it, not final ·
    advanced: this step is done, another follows · retry: provably not executed · uncertain: nobody knows ·
    dead: a person must look · park: the destination refuses us, not the message · cancelled: withdrawn before any send.
    """

    kind: Kind
    provider_id: str | None = None
    provider_status: str | None = None
    refusal: str | None = None  # the provider's code, such as insufficient_funds
    http_status: int | None = None
    request_id: str | None = None
    replayed: bool = False  # the provider repeated the stored answer to an earlier call with the same key
    error: str | None = None  # a class and a code, never text that holds customer data
    retry_after: float | None = None  # seconds
    verify: bool = False  # ask the provider how things stand before believing this
    seen: Mapping[str, Any] | None = None  # the provider's object, of which only what people compare is kept


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back from one HTTP call, as plain data."""

    status: int | None = None  # None: no HTTP answer came
    body: Mapping[str, Any] | None = None  # None: none, or not a JSON object
    sent: bool = True  # False: the connection was never made, so nothing can have arrived
    failure: str | None = None  # the class of what was raised instead of an answer
    request_id: str | None = None
    replayed: bool = False
    retry_after: float | None = None

    @property
    def error(self) -> Mapping[str, Any]:
        """Return the provider's error object, or an empty mapping."""
        found = (self.body or {}).get("error")
        return found if isinstance(found, Mapping) else {}


def classify(answer: Answer, *, asked: Mapping[str, Any], last: bool, maybe_executed: bool) -> Outcome:
    """Return the outcome of one POST.

    `asked` are the parameters of the message's first step, `last` says that no step follows. `maybe_executed` is true
    once any earlier try of this message had an unknown outcome: from then on nothing counts as not executed, and a
    refusal is believed only after a look-up.
    """
    outcome = _judge(answer, asked=asked, last=last)
    if maybe_executed and outcome.kind == "retry":
        outcome = replace(outcome, kind="uncertain")
    if outcome.kind == "rejected" and maybe_executed:
        outcome = replace(outcome, verify=True)
    if answer.replayed and outcome.kind != "uncertain":  # an old answer: known as of the first call
        outcome = replace(outcome, verify=True)
    return replace(outcome, http_status=answer.status, request_id=answer.request_id, replayed=answer.replayed)


def _judge(answer: Answer, *, asked: Mapping[str, Any], last: bool) -> Outcome:
    status = answer.status
    if status is None:
        return Outcome(kind="uncertain" if answer.sent else "retry", error=answer.failure)
    if status in (401, 403):
        return Outcome(kind="park", error=f"{status} {answer.error.get('code') or 'refused'}")
    if status == 429:
        return Outcome(kind="retry", error=f"429 {answer.error.get('code') or ''}".strip(), retry_after=answer.retry_after)
    if answer.body is None:
        return Outcome(kind="uncertain", error=f"{status} unreadable")
    if 200 <= status < 300:
        return judge_object(answer.body, asked=asked, last=last)
    return _judge_error(answer)


def _judge_error(answer: Answer) -> Outcome:
    status, error = answer.status, answer.error
    code = error.get("code")
    named = f"{status} {code or error.get('type') or ''}".strip()
    if error.get("type") == "idempotency_error":  # the first request with this key may have succeeded
        return Outcome(kind="dead", error=named, verify=True)
    if status == 409:
        return Outcome(kind="uncertain" if code == "idempotency_key_in_use" else "retry", error=named)
    if status == 402:
        return Outcome(kind="rejected", provider_id=_intent(error), refusal=error.get("decline_code") or code, error=named)
    if status == 400 and code == "rate_limit":
        return Outcome(kind="retry", error=named, retry_after=answer.retry_after)
    if status in (400, 404):
        return _judge_invalid(error, named)
    return Outcome(kind="uncertain", error=named)  # 5xx, 424, and whatever is not listed


def _judge_invalid(error: Mapping[str, Any], named: str) -> Outcome:
    """Return the outcome of an invalid request: definitive, except where an earlier request of ours may be the reason."""
    code = error.get("code")
    if code == "payment_intent_unexpected_state":
        return Outcome(kind="uncertain", provider_id=_intent(error), error=named, verify=True)
    ours_maybe = code == "charge_already_refunded" or (code is None and error.get("param") == "amount")
    return Outcome(kind="rejected", refusal=code or "invalid_request", error=named, verify=ours_maybe)


def _intent(error: Mapping[str, Any]) -> str | None:
    intent = error.get("payment_intent")
    return intent.get("id") if isinstance(intent, Mapping) else None


def judge_object(found: Mapping[str, Any], *, asked: Mapping[str, Any], last: bool) -> Outcome:
    """Return what a PaymentIntent, a refund or a credit note says, as an answer to the last step or to an earlier one."""
    if not found.get("id") or not as_asked(found, asked=asked):
        return Outcome(kind="uncertain", error="not what was asked for", seen=compared(found))
    status = str(found.get("status"))
    known = Outcome(kind="uncertain", provider_id=found["id"], provider_status=status, seen=compared(found))
    if found.get("object") == "refund":
        return _judge_refund(found, known)
    if found.get("object") == "credit_note":
        return _judge_credit_note(known)
    return _judge_intent(found, known, last=last)


def _judge_intent(intent: Mapping[str, Any], known: Outcome, *, last: bool) -> Outcome:
    status, failed = known.provider_status, intent.get("last_payment_error") or {}
    if status == "succeeded":
        return replace(known, kind="succeeded")
    if status in ("processing", "requires_action", "requires_capture"):
        return replace(known, kind="accepted")
    if status == "canceled":
        return replace(known, kind="rejected", refusal=intent.get("cancellation_reason") or "canceled")
    if status == "requires_payment_method" and failed:
        return replace(known, kind="rejected", refusal=failed.get("decline_code") or failed.get("code"))
    if status == "requires_confirmation" and not last:
        return replace(known, kind="advanced")
    return replace(known, error=f"unexpected status {status}")


def _judge_refund(refund: Mapping[str, Any], known: Outcome) -> Outcome:
    status = known.provider_status
    if status == "succeeded":
        return replace(known, kind="succeeded")
    if status in ("pending", "requires_action"):
        return replace(known, kind="accepted")
    if status in ("failed", "canceled"):
        return replace(known, kind="rejected", refusal=refund.get("failure_reason") or status)
    return replace(known, error=f"unexpected status {status}")


def _judge_credit_note(known: Outcome) -> Outcome:
    if known.provider_status == "issued":
        return replace(known, kind="succeeded")
    if known.provider_status == "void":
        return replace(known, kind="rejected", refusal="void")
    return replace(known, error=f"unexpected status {known.provider_status}")


def compared(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of the provider's object, for people who hold it against the request: no name, no text of a bank."""
    kept = {name: found[name] for name in SEEN if found.get(name) is not None}
    failed = found.get("last_payment_error")
    if isinstance(failed, Mapping):
        kept["last_payment_error"] = failed.get("decline_code") or failed.get("code")
    return kept


def as_asked(found: Mapping[str, Any], *, asked: Mapping[str, Any]) -> bool:
    """Return whether the provider's object has the amount, currency and owner that were asked for."""
    named = ("amount", "currency", "customer", "payment_intent", "invoice")
    return all(found.get(name) == asked[name] for name in named if name in asked)
