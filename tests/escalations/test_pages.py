"""The escalation's page: each kind, each reader, each decision, each lost race."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from escalations import cases, lifecycle
from tests.escalations.scenes import Scene, person

Begin = Callable[..., Scene]
Browse = Callable[[Any], Client]
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'{{ 7 }}"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"
KINDS = ["approval", "rollbacks", "asked", "infrastructure", "budget", "payment", "dirty_state"]
VERBS = (
    *("claim", "release", "reassign", "snooze", "wake", "edit", "drop", "take-over", "preview", "decide", "opens-next", "run"),
)
OFFERED = {
    "approval": {"approve", "reject", "answer"},
    "rollbacks": {"answer", "retry", "close"},
    "asked": {"answer", "close"},
    "infrastructure": {"retry", "answer", "close"},
    "budget": {"answer", "close"},
    "payment": {"close"},
    "dirty_state": {"close"},
}


def read(client: Client, escalation: int) -> str:
    response = client.get(f"/escalations/{escalation}/")
    assert response.status_code == 200
    return response.content.decode()


def decide(client: Client, escalation: int, **given: Any) -> Any:
    return client.post(f"/escalations/{escalation}/decide/", given)


def approve(client: Client, made: Scene, escalation: int) -> Any:
    """Sign what the worker's preview shows."""
    (preview,) = made.previews()
    return decide(client, escalation, kind="approve", revision=0, preview=preview)


def state(web: Any, escalation: int) -> str:
    return str(web.execute("SELECT state FROM public.escalations_escalation WHERE id = %s", (escalation,)).fetchone()[0])


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_offers_its_decisions_to_reviewers_only(scene: Begin, browse: Browse, reviewer: Any, kind: str) -> None:
    escalation = getattr(scene(), kind)()
    page = read(browse(reviewer), escalation)
    assert {verb for verb in ("approve", "reject", "answer", "retry", "close") if f'value="{verb}"' in page} == OFFERED[kind]
    looked_at = read(browse(person("boss", "admin")), escalation)
    assert 'name="kind"' not in looked_at
    assert "You may look on." in looked_at
    client = browse(person("nina", "support"))
    for path in ("/escalations/", f"/escalations/{escalation}/", f"/escalations/{escalation}/result/", "/decisions/"):
        assert client.get(path).status_code == 403


def test_an_admin_and_support_decide_nothing(scene: Begin, browse: Browse, web: Any) -> None:
    escalation = scene().approval()
    for user in (person("boss", "admin"), person("nina", "support")):
        client = browse(user)
        for verb in VERBS:
            answer = client.post(f"/escalations/{escalation}/{verb}/", {"kind": "approve", "revision": 0})
            assert answer.status_code == 403, verb
        assert client.post("/escalations/next/").status_code == 403
    assert state(web, escalation) == "open"


def test_an_approval_says_what_was_shown(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    escalation = scene().approval()
    assert browse(reviewer).post(f"/escalations/{escalation}/decide/", {"kind": "approve"}).status_code == 422
    assert state(web, escalation) == "open"


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_text_stays_text(scene: Begin, browse: Browse, owner: Any, reviewer: Any, kind: str) -> None:
    made = scene(name=HOSTILE)
    escalation = getattr(made, kind)()
    for role in ("ai", "human", "tool"):
        made.wrote(role, HOSTILE)
    owner.execute(
        "UPDATE public.escalations_escalation SET payload = payload"
        " || jsonb_build_object('reason', %(x)s::text, 'question', %(x)s::text)"
        " || jsonb_build_object('about', %(x)s::text, 'staff_message', %(x)s::text)"
        " WHERE id = %(id)s",
        {"x": HOSTILE, "id": escalation},
    )
    client = browse(reviewer)
    for page in (read(client, escalation), client.get("/escalations/").content.decode()):
        assert ESCAPED in page
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "{{ 7 }}" in page


def test_a_held_batch_shows_its_calls_and_the_verdict(scene: Begin, browse: Browse, reviewer: Any) -> None:
    page = read(browse(reviewer), scene().approval())
    for words in (
        "Bill September with €4,000.00",  # what the staff member said
        "1 · Create an invoice of €4,000.00 for September 2026",
        "Outage on 3 September",
        "Measured</span><b>€600.00",
        "Allowed <b>€500.00",
        "over by <b>€100.00",
        "Call 2 trips it; the others wait because the batch is all or nothing",
        "Credit balance",  # the domain's panel
    ):
        assert words in page


def test_rollbacks_show_every_attempt_and_both_truths(scene: Begin, browse: Browse, reviewer: Any) -> None:
    page = read(browse(reviewer), scene().rollbacks())
    assert page.count('<details class="att"') == 3
    for words in (
        "Nothing was changed.",
        "<code>23514</code> check_violation",
        "billing_credit_balance_not_negative",
        "<code>billing_credit_account</code>",
        "created, then undone",
        "UPDATE public.billing_credit_account",
        "FAILED: The credit balance is €50.00 (5000 minor units), so €50.01 cannot be used.",
        "NOT APPLIED: undone because another call of this step failed.",
        "The database refused it: SQLSTATE 23514 check_violation",
        "It ran and changed 1 row; all of it was rolled back.",
        "None of its statements ran.",
        "The credit balance is <b>€50.00</b>, so <b>€50.01</b> cannot be used.",  # said to people
        "<ins>€80.00</ins>",  # what differed between the attempts
    ):
        assert words in page, words
    people, evidence = re.subn(r'(?s)<span class="mono">.*?</span>|<p class="told">.*?</p>', "", page)
    assert evidence
    assert "minor units" not in people


def test_a_refused_payment_shows_where_it_stands(scene: Begin, browse: Browse, reviewer: Any) -> None:
    page = read(browse(reviewer), scene().payment())
    for words in ("Refused: insufficient funds", "pi_test_", "No money moved.", "Charge €49.00 to the card ending in 4242"):
        assert words in page


def test_a_refused_payment_shows_the_request_that_it_came_from(scene: Begin, browse: Browse, owner: Any, reviewer: Any) -> None:
    made = scene()
    made.tries(("ApplyCredit", {"amount_minor": 99_999, "currency": "EUR"}))  # of nobody's request
    escalation = made.payment()
    made.tries(("ApplyCredit", {"amount_minor": 88_888, "currency": "EUR"}))  # of the same request, after the charge
    for number in range(15):  # more than the extract has room for
        made.says(f"Later request {number}.")
        made.wrote("ai", "Fine.")
    made.tries(("ApplyCredit", {"amount_minor": 77_777, "currency": "EUR"}))
    page = read(browse(reviewer), escalation)
    attempts, extract = page.split('id="at-h"')[1].split('id="conv-h"')
    found = re.findall(r"<span>(Attempt \d · [^<]+)</span><small>(It queued this message)?", attempts)
    assert found == [
        ("Attempt 1 · 2 calls were applied together", "It queued this message"),
        ("Attempt 2 · “Use €888.88 of credit outside an invoice” failed", ""),
    ]
    assert "Bill September with 49.00 and charge it." in extract
    assert "Later request" not in extract
    assert "“Bill September with 49.00 and charge it.”" in page.partition("</h1>")[2].partition("</section>")[0]


def test_attempts_have_the_numbers_of_the_conversation(scene: Begin, browse: Browse, web: Any, agent: Any, reviewer: Any) -> None:
    made, client = scene(), browse(reviewer)
    made.says("Use all the credit.")
    made.tries(("LookUpCustomer", {}))
    _, calls, message = made.tries(("ApplyCredit", {"amount_minor": 99_999, "currency": "EUR"}))
    first = made.opens("rollbacks", reason="It failed.", calls=calls, ai_message_id=message)
    page = read(client, first)
    assert "<span>Attempt 1 · “Use" in page
    assert "Attempt 2" not in page
    assert "<b>The agent</b> read" in page
    lifecycle.decide(web, escalation=first, kind="answer", text="Try 888.88.", user=reviewer.id)
    lifecycle.mark_done(agent, thread=made.thread)
    made.tries(("ApplyCredit", {"amount_minor": 88_888, "currency": "EUR"}))
    second = read(client, made.opens("rollbacks", reason="It failed.", calls=calls))
    assert re.findall(r"<span>(Attempt \d · [^<]+)</span>", second) == [
        "Attempt 1 · “Use €888.88 of credit outside an invoice” failed",
        "Attempt 1 · “Use €999.99 of credit outside an invoice” failed",
    ]  # an answer begins a new count, there as here


def test_the_page_costs_the_same_for_many_attempts(scene: Begin, browse: Browse, reviewer: Any) -> None:
    client, made = browse(reviewer), scene()
    escalation = made.rollbacks()
    with CaptureQueriesContext(connection) as few:
        read(client, escalation)
    more = scene(name="Other")
    for _ in range(9):
        more.tries(("ApplyCredit", {"amount_minor": 9_999, "currency": "EUR"}))
    escalation = more.rollbacks()
    with CaptureQueriesContext(connection) as lots:
        read(client, escalation)
    assert len(lots) <= len(few) + 1  # the neighbour in the inbox


# -- deciding ----------------------------------------------------------------------------------


def test_an_approval_goes_to_the_thread_and_its_result_is_shown(
    scene: Begin, browse: Browse, web: Any, agent: Any, reviewer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    response = approve(client, made, escalation)
    assert (response.status_code, response.headers["Location"]) == (302, f"/escalations/{escalation}/")
    page = read(client, escalation)
    assert "Approved. The agent goes on now." in page
    assert "Run again" not in page
    assert f'hx-get="/escalations/{escalation}/result/"' in page
    monkeypatch.setattr(cases, "FRESH", timedelta(0))
    page = read(client, escalation)
    assert "Approved, not run yet." in page
    assert "Run again" in page
    assert f'hx-get="/escalations/{escalation}/result/"' in page
    assert made.carries_out().kind == "applied"
    part = client.get(f"/escalations/{escalation}/result/").content.decode()
    for words in ("Approved by you.", "2 calls were applied together", "5 rows changed in one transaction"):
        assert words in part
    assert "hx-get" not in part  # nothing more will come


def test_a_decision_of_which_something_came_is_never_called_not_run(
    scene: Begin, browse: Browse, web: Any, agent: Any, reviewer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    approve(client, made, escalation)
    monkeypatch.setattr(cases, "FRESH", timedelta(0))
    assert made.carries_out(taken=False).kind == "applied"
    page = read(client, escalation)  # between the batch's COMMIT and the word that the thread went on
    assert "It ran:</b> applied" in page
    assert "not run yet" not in page
    assert "Run again" not in page
    assert f'hx-get="/escalations/{escalation}/result/"' in page


def test_a_refused_payment_says_what_can_be_done(scene: Begin, browse: Browse, reviewer: Any) -> None:
    made = scene()
    page = read(browse(reviewer), made.payment())
    (conversation,) = made.owner.execute("SELECT id FROM public.agent_conversation").fetchone()
    there = f'<a href="/conversations/{conversation}/">the conversation</a>'
    assert f"Ask for the charge again in {there} once the card is changed." in page


def test_a_rejection_joins_the_chosen_reason_and_the_words(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    escalation = scene().approval()
    response = decide(browse(reviewer), escalation, kind="reject", reason="amount", text="The log shows 8 seats.")
    assert response.status_code == 302
    (text,) = web.execute("SELECT text FROM public.escalations_decision").fetchone()
    assert text == "The amount is not supported by the records. The log shows 8 seats."


@pytest.mark.parametrize(
    ("kind", "given", "complaint"),
    [
        ("approval", {"kind": "reject", "reason": "other"}, "Give a reason"),
        ("asked", {"kind": "answer", "text": "   "}, "Write the answer."),
        ("asked", {"kind": "answer", "text": "x" * 2001}, "at most 2000 characters"),
        ("asked", {"kind": "expire"}, "Select a valid choice"),
        ("asked", {"kind": "answer", "text": "nul\x00"}, "Null characters are not allowed."),
        ("asked", {}, "This field is required."),
    ],
)
def test_what_makes_no_sense_gets_a_sentence_and_decides_nothing(
    scene: Begin, browse: Browse, web: Any, reviewer: Any, kind: str, given: Any, complaint: str
) -> None:
    escalation = getattr(scene(), kind)()
    response = decide(browse(reviewer), escalation, **given)
    page = response.content.decode()
    assert response.status_code == 422
    assert complaint in page
    assert "Nothing was decided." in page
    assert state(web, escalation) == "open"


def test_the_second_decision_is_told_who_was_first(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    escalation = scene().approval()
    first, second = browse(person("ravi", "reviewer")), browse(reviewer)
    assert decide(first, escalation, kind="reject", reason="target").status_code == 302
    lost = decide(second, escalation, kind="approve", revision=0, preview=1)
    assert lost.status_code == 409
    page = lost.content.decode()
    assert "Ravi already rejected this" in page
    assert "Your approval was not used and changed nothing." in page
    again = decide(first, escalation, kind="reject", reason="target")  # a double click
    assert again.status_code == 409
    assert "You already rejected this" in again.content.decode()
    assert web.execute("SELECT count(*) FROM public.escalations_decision").fetchone() == (1,)


def test_a_held_escalation_is_the_holders_until_taken_over(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    escalation = scene().asked()
    holder, other = browse(person("ravi", "reviewer")), browse(reviewer)
    assert holder.post(f"/escalations/{escalation}/claim/").status_code == 302
    assert "ravi holds it" in read(other, escalation)
    assert decide(other, escalation, kind="answer", text="The blue one.").status_code == 409
    assert other.post(f"/escalations/{escalation}/claim/").status_code == 409
    assert other.post(f"/escalations/{escalation}/claim/", {"from_another": "1"}).status_code == 302
    assert "You hold it" in read(other, escalation)
    assert decide(holder, escalation, kind="answer", text="The red one.").status_code == 409
    assert other.post(f"/escalations/{escalation}/release/").status_code == 302
    assert state(web, escalation) == "open"


def test_nobody_approves_their_own_request(scene: Begin, browse: Browse, web: Any) -> None:
    both = person("nina", "support", "reviewer")
    made = scene(staff=both)
    escalation, client = made.approval(), browse(both)
    response = approve(client, made, escalation)
    assert "You asked for this." in read(client, escalation)
    assert response.status_code == 409
    assert "Nobody approves their own request." in response.content.decode()
    assert decide(client, escalation, kind="reject", text="A mistake of mine.").status_code == 302


def test_another_revision_than_the_shown_one_is_not_approved(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    escalation = scene().approval()
    response = decide(browse(reviewer), escalation, kind="approve", revision=1, preview=1)
    assert response.status_code == 409
    assert "The proposal or its preview changed since you looked." in response.content.decode()
    assert state(web, escalation) == "open"


def test_a_decision_of_another_kind_is_refused(scene: Begin, browse: Browse, reviewer: Any) -> None:
    assert decide(browse(reviewer), scene().asked(), kind="approve", revision=0, preview=1).status_code == 409


def test_a_payment_closes_at_once(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    escalation, client = scene().payment(), browse(reviewer)
    assert decide(client, escalation, kind="close", text="Called them.").status_code == 302
    assert state(web, escalation) == "done"
    assert "No conversation waited for it." in read(client, escalation)


def test_run_again_calls_a_worker_and_changes_nothing(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    approve(client, made, escalation)
    response = client.post(f"/escalations/{escalation}/run/", follow=True)
    assert "A worker was called." in response.content.decode()
    assert state(web, escalation) == "decided"


def test_an_expired_one_says_that_nobody_decided(scene: Begin, browse: Browse, agent: Any, reviewer: Any) -> None:
    escalation = scene().asked()
    lifecycle.expire(agent, escalation=escalation, text="Nobody decided for a day.")
    page = read(browse(reviewer), escalation)
    assert "Expired undecided." in page
    assert 'name="kind"' not in page


def test_what_does_not_exist_is_not_found(browse: Browse, reviewer: Any) -> None:
    client = browse(reviewer)
    assert client.get("/escalations/404/").status_code == 404
    for verb in VERBS:
        assert client.post(f"/escalations/404/{verb}/").status_code == 404
    assert client.get("/escalations/99999999999999999999999/").status_code == 404
    assert client.get("/escalations/1/decide/").status_code == 405


def test_nobody_sees_the_desk_without_logging_in(scene: Begin) -> None:
    escalation = scene().asked()
    for path in ("/escalations/", f"/escalations/{escalation}/", "/decisions/"):
        assert Client().get(path).headers["Location"].startswith("/login/")
