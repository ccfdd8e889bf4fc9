"""What people turned down is not tried again in its conversation; what they only worded otherwise was not turned down."""

import pytest

from tests.agent.scripts import calls, says
from tests.agent.talks import Talk

SEPTEMBER = {"billing_period": "2026-09-01", "currency": "EUR"}


@pytest.mark.parametrize("as_person", [False, True])
def test_an_approved_edit_of_the_reason_alone_runs(talk: Talk, as_person: bool) -> None:
    bill = {**SEPTEMBER, "customer_id": talk.customer, "amount_minor": 400_000}
    memo = {**SEPTEMBER, "customer_id": talk.customer, "amount_minor": 60_000, "reason": "Outage"}
    script = [calls(("CreateInvoice", bill), ids=["a"]), calls(("IssueCreditMemo", memo), ids=["b"]), says("Done.")]
    talk.say("Bill September and give them 600 back.")
    talk.drive(*script)
    talk.revise({"index": 0, "arguments": memo | {"reason": "Outage on 3 September"}}, as_person=as_person)
    talk.drive(*script)
    talk.decide("approve")
    talk.drive(*script)
    assert talk.state() == "idle"
    kept = talk.one("SELECT arguments ->> 'reason' FROM public.ledger_execution WHERE tool = 'IssueCreditMemo'")
    assert kept == "Outage on 3 September"
