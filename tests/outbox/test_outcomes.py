"""What each answer means: the whole table, without a network."""

from typing import Any

import pytest

from outbox.outcomes import Answer, Outcome, classify

ASKED = {"amount": 48_000, "currency": "eur", "customer": "cus_1"}
INTENT = {"id": "pi_1", "object": "payment_intent", "amount": 48_000, "currency": "eur", "customer": "cus_1"}
REFUND = {"id": "re_1", "object": "refund", "amount": 100, "payment_intent": "pi_1"}
REFUND_ASKED = {"amount": 100, "payment_intent": "pi_1"}
DECLINED = {"code": "card_declined", "decline_code": "insufficient_funds"}


def judge(answer: Answer, *, asked: dict[str, Any] = ASKED, last: bool = True, maybe_executed: bool = False) -> Outcome:
    return classify(answer, asked=asked, last=last, maybe_executed=maybe_executed)


def failed(status: int, **error: Any) -> Answer:
    return Answer(status=status, body={"error": error})


@pytest.mark.parametrize(
    ("intent", "kind"),
    [
        ({"status": "succeeded"}, "succeeded"),
        ({"status": "processing"}, "accepted"),
        ({"status": "requires_action"}, "accepted"),
        ({"status": "requires_capture"}, "accepted"),
        ({"status": "canceled"}, "rejected"),
        ({"status": "requires_payment_method", "last_payment_error": DECLINED}, "rejected"),
        ({"status": "requires_payment_method"}, "uncertain"),
        ({"status": "requires_confirmation"}, "uncertain"),
        ({"status": "something new"}, "uncertain"),
        ({"status": "succeeded", "amount": 1}, "uncertain"),
        ({"status": "succeeded", "currency": "usd"}, "uncertain"),
        ({"status": "succeeded", "customer": "cus_2"}, "uncertain"),
        ({"status": "succeeded", "id": None}, "uncertain"),
    ],
)
def test_it_reads_an_intent(intent: dict[str, Any], kind: str) -> None:
    assert judge(Answer(status=200, body=INTENT | intent)).kind == kind


def test_it_goes_on_when_an_intent_only_waits_for_the_next_step() -> None:
    outcome = judge(Answer(status=200, body=INTENT | {"status": "requires_confirmation"}), last=False)

    assert (outcome.kind, outcome.provider_id) == ("advanced", "pi_1")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("succeeded", "succeeded"),
        ("pending", "accepted"),
        ("requires_action", "accepted"),
        ("failed", "rejected"),
        ("canceled", "rejected"),
        ("something new", "uncertain"),
    ],
)
def test_it_reads_a_refund(status: str, kind: str) -> None:
    assert judge(Answer(status=200, body=REFUND | {"status": status}), asked=REFUND_ASKED).kind == kind


@pytest.mark.parametrize(
    ("note", "kind"),
    [
        ({"status": "issued"}, "succeeded"),
        ({"status": "void"}, "rejected"),
        ({"status": "something new"}, "uncertain"),
        ({"status": "issued", "invoice": "in_2"}, "uncertain"),
        ({"status": "issued", "amount": 1}, "uncertain"),
    ],
)
def test_it_reads_a_credit_note(note: dict[str, Any], kind: str) -> None:
    found = {"id": "cn_1", "object": "credit_note", "amount": 100, "invoice": "in_1"} | note
    assert judge(Answer(status=200, body=found), asked={"amount": 100, "invoice": "in_1"}).kind == kind


ERRORS = [
    # answer, kind, verify
    (Answer(failure="ConnectionError"), "uncertain", False),
    (Answer(failure="NewConnectionError", sent=False), "retry", False),
    (failed(500, type="api_error"), "uncertain", False),
    (failed(503, type="api_error"), "uncertain", False),
    (Answer(status=502), "uncertain", False),
    (Answer(status=200), "uncertain", False),
    (failed(409, code="idempotency_key_in_use"), "uncertain", False),
    (failed(409, code="lock_timeout"), "retry", False),
    (failed(429, code="lock_timeout"), "retry", False),
    (failed(429, code="rate_limit"), "retry", False),
    (Answer(status=429), "retry", False),
    (failed(400, code="rate_limit"), "retry", False),
    (failed(424, type="api_error"), "uncertain", False),
    (failed(418), "uncertain", False),
    (failed(400, type="idempotency_error"), "dead", True),
    (failed(409, type="idempotency_error"), "dead", True),
    (failed(402, **DECLINED), "rejected", False),
    (failed(402, code="authentication_required"), "rejected", False),
    (failed(400, code="payment_intent_unexpected_state"), "uncertain", True),
    (failed(400, code="charge_already_refunded"), "rejected", True),
    (failed(400, param="amount"), "rejected", True),
    (failed(400, code="charge_disputed"), "rejected", False),
    (failed(400, code="refund_disputed_payment"), "rejected", False),
    (failed(400, code="charge_not_refundable"), "rejected", False),
    (failed(400, code="parameter_unknown", param="x"), "rejected", False),
    (failed(404, code="resource_missing"), "rejected", False),
    (failed(401), "park", False),
    (failed(403), "park", False),
    (Answer(status=301), "uncertain", False),
    (Answer(failure="SoftTimeLimitExceeded"), "uncertain", False),
]


@pytest.mark.parametrize(("answer", "kind", "verify"), ERRORS)
def test_it_reads_a_failure(answer: Answer, kind: str, verify: bool) -> None:
    outcome = judge(answer)

    assert (outcome.kind, outcome.verify) == (kind, verify)


@pytest.mark.parametrize(("answer", "kind", "verify"), ERRORS)
def test_it_believes_no_no_after_an_unknown_try(answer: Answer, kind: str, verify: bool) -> None:
    outcome = judge(answer, maybe_executed=True)

    assert outcome.kind == ("uncertain" if kind == "retry" else kind)
    assert outcome.verify is (verify or kind == "rejected")


def test_it_names_the_reason_of_a_decline() -> None:
    outcome = judge(failed(402, **DECLINED, payment_intent=INTENT))

    assert (outcome.refusal, outcome.provider_id) == ("insufficient_funds", "pi_1")
    assert judge(failed(402, code="authentication_required")).refusal == "authentication_required"


def test_it_looks_again_when_the_answer_is_an_old_one() -> None:
    for body in (INTENT | {"status": "succeeded"}, {"error": DECLINED}):
        assert judge(Answer(status=200 if "id" in body else 402, body=body, replayed=True)).verify
    assert not judge(Answer(status=500, body={}, replayed=True)).verify


def test_it_passes_on_how_long_to_wait() -> None:
    assert judge(Answer(status=429, body={}, retry_after=7.0)).retry_after == 7.0


def test_it_keeps_no_text_of_the_provider() -> None:
    outcome = judge(failed(402, **DECLINED, message="The card of Mr Smith was declined."))

    assert "Smith" not in repr(outcome)
