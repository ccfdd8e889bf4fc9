"""The preview on a case's page: each state of it, what it shows, and what it lets a reviewer do."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from escalations import cases, desk
from tests.agent.batches import move_credit
from tests.escalations.scenes import Scene, person

Begin = Callable[..., Scene]
Browse = Callable[[Any], Client]
POLLS = 'hx-select="#proof"'
CLOSED = 'name="kind" value="approve" data-key="a" disabled'
OPEN = 'name="kind" value="approve" data-key="a">'


def read(client: Client, escalation: int, query: str = "") -> str:
    response = client.get(f"/escalations/{escalation}/{query}")
    assert response.status_code == 200
    return response.content.decode()


def test_until_it_is_made_the_page_asks_again_and_nobody_approves(scene: Begin, browse: Browse, reviewer: Any) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    page = read(client, escalation)
    assert "The preview is being made." in page
    assert POLLS in page
    assert CLOSED in page
    assert "Create an invoice of €4,000.00" in page  # what is asked is there at once
    made.previews()
    page = read(client, escalation)
    assert POLLS not in page
    assert OPEN in page


def test_a_worker_that_takes_long_is_called_once_more(
    scene: Begin, browse: Browse, reviewer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "PATIENCE", timedelta(0))
    page = read(browse(reviewer), scene().approval())
    assert "No worker has made the preview yet." in page
    assert "Call a worker" in page


def test_a_clean_preview_shows_rows_before_and_after_and_what_approving_will_do(
    scene: Begin, browse: Browse, reviewer: Any
) -> None:
    made = scene()
    escalation = made.approval()
    made.previews()
    page = read(browse(reviewer), escalation)
    for words in (
        "What would change",
        "run for real at",
        "then rolled back",
        "no errors",
        "Would apply",
        "Trips a rule",
        "<del>€50.00</del>",
        "<ins>€650.00</ins>",
        "Approve: <b>4 rows change, nothing leaves.</b>",
        "What runs is exactly what is shown, or nothing.",
        "Commits 2 of 2.",
        "<dt>Credit balance</dt><dd>€50.00</dd>",  # the money, and what this makes of it
        '<dt class="sum">Balance after this</dt><dd class="sum">€650.00</dd>',
        "the default in code",
        "You may decide.",
        "One reviewer is enough.",
    ):
        assert words in page, words
    assert made.desk.count("billing_invoice") == 0


def test_what_would_leave_is_said_on_the_call_and_before_the_decision(
    scene: Begin, browse: Browse, owner: Any, reviewer: Any
) -> None:
    made = scene()
    escalation = made.approval()
    made.previews(
        messages=[
            {
                "call_index": 1,
                "topic": "payment.refund",
                "aggregate": "payment:4",
                "payload": {"amount_minor": 32_000, "currency": "EUR", "card_last4": "4242", "invoice_id": 3},
                "sentence": "Refund €320.00 to the card ending in 4242 for invoice 3",
            }
        ]
    )
    page = read(browse(reviewer), escalation)
    assert "Refund €320.00 to the card ending in 4242 for invoice 3: leaves for Stripe" in page
    assert "4 rows change, 1 message leaves for Stripe: refund €320.00 to the card ending in 4242 for invoice 3." in page


@pytest.mark.parametrize(
    ("outcome", "says", "failure"),
    [
        ("fails", "It would fail, so it cannot be approved.", {"call_index": 1, "sqlstate": "23514", "constraint": "one_cap"}),
        ("invalid", "The calls are not valid, so they cannot be approved.", {"call_index": 1}),
        ("refused", "A rule refuses it, so nobody can approve it.", {"call_index": 1}),
        ("unavailable", "The preview could not be made.", {"call_index": None}),
    ],
)
def test_what_would_not_go_through_says_why_and_cannot_be_approved(
    scene: Begin, browse: Browse, web: Any, reviewer: Any, outcome: str, says: str, failure: Any
) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    found = {"sentence": "Nobody has €1.00.", "table": "a_table", "statement": "SELECT 1", "detail": "no", **failure}
    (preview,) = made.previews(outcome=outcome, digest=None, changes=None, messages=None, allowed=False, failure=found)
    page = read(client, escalation)
    assert says in page
    assert "Nobody has <b>€1.00</b>." in page
    assert CLOSED in page
    assert ("one_cap" in page) == (outcome == "fails")
    assert "Run preview again" in page
    refused = client.post(f"/escalations/{escalation}/decide/", {"kind": "approve", "revision": 0, "preview": preview})
    assert refused.status_code == 409
    assert "This cannot be signed" in refused.content.decode()


def test_running_it_again_shows_the_old_one_as_out_of_date_then_what_changed(scene: Begin, browse: Browse, reviewer: Any) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    made.previews()
    move_credit(made.owner, made.customer, amount_minor=1_700)
    assert client.post(f"/escalations/{escalation}/preview/").status_code == 302
    page = read(client, escalation)
    assert "Out of date" in page
    assert 'class="sec stale"' in page
    assert POLLS in page
    assert CLOSED in page
    made.previews()
    page = read(client, escalation)
    assert "Changed since the last preview." in page
    assert '<th scope="row">Balance</th><td><del>€50.00</del></td><td><ins>€67.00</ins></td>' in page
    assert "1 field on 1 row; the rest is as it was" in page
    assert OPEN in page


def test_an_approval_that_did_not_run_is_asked_again_with_what_changed(scene: Begin, browse: Browse, reviewer: Any) -> None:
    made = scene()
    first, client = made.approval(), browse(reviewer)
    (preview,) = made.previews()
    signed = desk.sign(escalation=first, user=reviewer.id, revision=0, preview=preview)
    assert signed.decision
    move_credit(made.owner, made.customer, amount_minor=1_700)
    assert made.carries_out().kind == "drifted"
    again = made.asks_again(first, decision=signed.decision.id)
    page = read(client, again)
    assert "Changed since it was approved." in page
    assert f'You approved <a href="/escalations/{first}/">E-{first}</a>' in page
    assert "Out of date" in page  # what was approved, while the new preview is being made
    made.previews()
    page = read(client, again)
    assert '<th scope="row">Balance</th><td><del>€50.00</del></td><td><ins>€67.00</ins></td>' in page
    assert OPEN in page
    old = read(client, first)
    assert "What was approved here did not run." in old
    assert f'href="/escalations/{again}/"' in old
    assert "Stopped: changed since" in old


def test_a_preview_that_sees_the_same_tells_no_change(scene: Begin, browse: Browse, reviewer: Any) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    made.previews()
    client.post(f"/escalations/{escalation}/preview/")
    made.previews()
    assert "What changed since" not in read(client, escalation)


def test_two_signatures_are_counted_on_the_page_and_the_last_one_decides(
    scene: Begin, browse: Browse, web: Any, reviewer: Any
) -> None:
    made = scene()
    escalation = made.approval()
    (preview,) = made.previews(needs=2)
    first, second = browse(person("ravi", "reviewer")), browse(reviewer)
    page = read(first, escalation)
    assert "Sign: <b>" in page
    assert "2 reviewers have to sign and you are the first: nothing runs yet." in page
    assert "Sign, 1 of 2" in page
    given = {"kind": "approve", "revision": 0, "preview": preview}
    assert first.post(f"/escalations/{escalation}/decide/", given).status_code == 302
    own = read(first, escalation)
    assert "You have signed it." in own
    assert CLOSED in own
    assert first.post(f"/escalations/{escalation}/decide/", given).status_code == 409
    page = read(second, escalation)
    assert "1 of 2 reviewers signed." in page
    assert "ravi signed at" in page
    assert "Yours is the last signature." in page
    assert second.post(f"/escalations/{escalation}/decide/", given).status_code == 302
    assert "Approved. The agent goes on now." in read(second, escalation)


def test_a_signature_for_what_is_no_longer_shown_is_said_not_to_count(scene: Begin, browse: Browse, reviewer: Any) -> None:
    made = scene()
    escalation = made.approval()
    (preview,) = made.previews(needs=2)
    desk.sign(escalation=escalation, user=person("ravi", "reviewer").id, revision=0, preview=preview)
    move_credit(made.owner, made.customer, amount_minor=1_700)
    desk.ask_preview(escalation=escalation, user=reviewer.id)
    made.previews(needs=2)
    page = read(browse(reviewer), escalation)
    assert "The signature of ravi does not count:" in page
    assert "Sign, 1 of 2" in page


def test_an_earlier_decision_about_the_like_is_shown_with_its_reason(scene: Begin, browse: Browse, reviewer: Any) -> None:
    first = scene().approval()
    desk.decide(escalation=first, kind="reject", text="The log shows 8 seats.", user=person("ravi", "reviewer").id)
    page = read(browse(reviewer), scene().approval())
    assert f'<a href="/escalations/{first}/">€4,000.00, another customer</a>' in page
    assert "“The log shows 8 seats.”" in page


def test_who_set_the_limit_and_when_is_said(scene: Begin, browse: Browse, owner: Any, reviewer: Any) -> None:
    owner.execute(
        "INSERT INTO public.agent_policy (rule, tool, value, previous, reason, set_by)"
        " VALUES ('per_call', 'IssueCreditMemo', 25000, 50000, 'Year end', %s)",
        (person("boss", "admin").id,),
    )
    made = scene()
    escalation = made.approval()
    made.previews()
    page = read(browse(reviewer), escalation)
    assert "set by boss on" in page
    assert "Allowed <b>€250.00" in page
    assert "over by <b>€350.00" in page


def test_an_admin_reads_the_preview_and_can_do_nothing(scene: Begin, browse: Browse) -> None:
    made = scene()
    escalation = made.approval()
    made.previews()
    page = read(browse(person("boss", "admin")), escalation)
    assert "What would change" in page
    assert "You may look on." in page
    for words in ('name="kind"', "data-submits", "Run preview again", "Edit before approving", 'id="snooze"', "?edit=1"):
        assert words not in page, words
    assert 'id="edit"' not in read(browse(person("boss", "admin")), escalation, "?edit=1")
