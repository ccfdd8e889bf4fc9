"""Acts on one line and on several: what the tray shows, what is refused, and what is told of each item."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from escalations import lifecycle
from tests.escalations.questions import ask, edited, row, show, sign
from tests.escalations.scenes import person

Browse = Callable[[Any], Client]
ITEM = re.compile(r'name="item" value="([^"]+)"')
REFUND = {
    "call_index": 0,
    "topic": "payment.refund",
    "payload": {"amount_minor": 28_200, "currency": "EUR"},
    "sentence": "Refund €282.00",
}
CHANGE = {"call_index": 0, "table_name": "billing_invoice", "operation": "UPDATE", "before": {}, "after": {}}


@pytest.fixture
def client(browse: Browse, reviewer: Any) -> Client:
    return browse(reviewer)


@pytest.fixture
def ravi(database: None) -> int:
    return int(person("ravi", "reviewer").id)


def tray(client: Client, *escalations: int) -> str:
    query = "&".join(f"select={number}" for number in escalations)
    return client.get(f"/escalations/tray/?{query}").content.decode()


def act(client: Client, act: str, page: str, **more: Any) -> Any:
    """Send the tray's form as the page gave it out."""
    return client.post("/escalations/", {"act": act, "item": ITEM.findall(page), **more})


def decisions(web: Any) -> list[tuple[int, str, str]]:
    found: list[tuple[int, str, str]] = web.execute(
        "SELECT escalation_id, kind, text FROM public.escalations_decision ORDER BY escalation_id"
    ).fetchall()
    return found


def sentence(page: str, escalation: int) -> str:
    """Return what the strip says about one item."""
    found = re.search(rf'E-{escalation}</span>.*?class="soft">([^<]+)<', page, re.DOTALL)
    assert found, page
    return found[1].replace("&#x27;", "'")


# -- the tray ------------------------------------------------------------------------------------


def test_it_shows_what_approving_each_would_do(agent: Any, client: Client) -> None:
    first, second = ask(agent, kind="approval"), ask(agent, kind="approval")
    show(agent, first, changes=[CHANGE] * 4, messages=[REFUND])
    show(agent, second, changes=[CHANGE], messages=[REFUND])
    page = tray(client, first, second)
    assert "2 selected" in page
    assert "same rule and tools · 5 rows change · €564.00 leaves in 2 messages" in page
    assert "4 rows change · leaves: Refund €282.00" in page
    assert "Issue a credit memo of €600.00" in page
    assert page.count("Ran clean at") == 2
    assert re.search(r"Approve 2\s*<kbd>", page)


def test_only_what_ran_clean_can_be_approved_there(agent: Any, web: Any, client: Client, reviewer: Any, ravi: int) -> None:
    clean, unmade, fails, own, held, signed, changed = (
        ask(agent, kind="approval", requested_by=reviewer.id if number == 3 else None) for number in range(7)
    )
    for escalation in (clean, own, held):
        show(agent, escalation)
    show(agent, fails, "fails", failure={"sentence": "The credit balance is €50.00."})
    lifecycle.claim(web, escalation=held, user=ravi)
    sign(web, signed, reviewer.id, show(agent, signed, needs=2))
    lifecycle.revise(web, escalation=changed, user=reviewer.id, calls=edited(), shown=0)
    show(agent, changed)
    page = tray(client, clean, unmade, fails, own, held, signed, changed)
    for words in (
        "Preview is being made", "Would fail", "The credit balance is €50.00.", "You asked for it", "ravi holds it",
        "You signed it", "Changed: sign it on its page",
    ):  # fmt: skip
        assert words in page
    assert re.search(r"Approve 1 of 7\s*<kbd>", page)
    assert [item for item in ITEM.findall(page) if item.split(":")[2]] == [
        next(i for i in ITEM.findall(page) if i.startswith(f"{clean}:"))
    ]


def test_different_kinds_are_not_decided_together(agent: Any, web: Any, client: Client) -> None:
    both = ask(agent, kind="approval"), ask(agent)
    show(agent, both[0])
    page = tray(client, *both)
    assert "different kinds: decide them one by one" in page
    for verb in ("Approve", "Reject", "Answer"):
        assert not re.search(rf"{verb} \d", page)
    assert re.search(r'value="claim"', page)
    response = act(client, "answer", page, **{"text-answer": "The blue one."})
    assert response.status_code == 409
    assert "These are of different kinds" in response.content.decode()
    assert decisions(web) == []


def test_one_kind_that_allows_different_decisions_is_not_decided_together(agent: Any, web: Any, client: Client) -> None:
    both = ask(agent, kind="rollbacks"), ask(agent, kind="rollbacks")
    lifecycle.revise(web, escalation=both[0], user=person("tom", "reviewer").id, calls=edited(), shown=0)  # may be approved now
    page = tray(client, *both)
    assert "different kinds" in page
    assert act(client, "retry", page).status_code == 409
    assert decisions(web) == []


def test_what_was_decided_meanwhile_is_missing_and_said(agent: Any, web: Any, client: Client, ravi: int) -> None:
    both = ask(agent), ask(agent)
    lifecycle.decide(web, escalation=both[0], kind="answer", text="Yes.", user=ravi)
    page = tray(client, *both)
    assert "1 selected" in page
    assert "1 of what you selected is decided by now." in page


def test_a_page_without_script_shows_the_tray_too(agent: Any, client: Client) -> None:
    escalation = ask(agent)
    page = client.get(f"/escalations/?select={escalation}&select=nonsense").content.decode()
    assert "1 selected" in page
    assert re.search(rf'value="{escalation}" form="selection"[^>]* checked', page)


def test_the_tray_asks_as_often_for_many_as_for_one(agent: Any, client: Client) -> None:
    many = [ask(agent, kind="approval") for _ in range(12)]
    for escalation in many:
        show(agent, escalation)
    with CaptureQueriesContext(connection) as one:
        tray(client, many[0])
    with CaptureQueriesContext(connection) as lots:
        tray(client, *many)
    assert len(one) == len(lots)


# -- deciding together ---------------------------------------------------------------------------


def test_several_are_approved_each_as_it_was_shown(agent: Any, web: Any, client: Client, reviewer: Any) -> None:
    three = [ask(agent, kind="approval") for _ in range(3)]
    for escalation in three:
        show(agent, escalation)
    response = act(client, "approve", tray(client, *three))
    assert response.status_code == 200
    page = response.content.decode()
    assert "Approve: done for all 3." in page
    assert [(number, kind) for number, kind, _ in decisions(web)] == [(number, "approve") for number in three]
    assert {row(web, number) for number in three} == {"decided"}
    signers = web.execute("SELECT reviewer, count(*) FROM public.escalations_signature GROUP BY 1").fetchall()
    assert signers == [(reviewer.id, 3)]


def test_each_that_was_lost_changed_held_or_never_shown_is_named(agent: Any, web: Any, client: Client, ravi: int) -> None:
    fine, lost, changed, previewed, held, unmade = (ask(agent, kind="approval") for _ in range(6))
    shown = {escalation: show(agent, escalation) for escalation in (fine, lost, changed, previewed, held)}
    page = tray(client, fine, lost, changed, previewed, held, unmade)
    sign(web, lost, ravi, shown[lost])
    lifecycle.revise(web, escalation=changed, user=ravi, calls=edited(), shown=0)
    show(agent, changed)
    show(agent, previewed, digest=b"moved")
    lifecycle.claim(web, escalation=held, user=ravi)
    show(agent, unmade)  # clean by now, but nobody saw it
    response = act(client, "approve", page)
    assert response.status_code == 200
    told = response.content.decode()
    assert "Approve: done for 1 of 6." in told
    assert "5 were left" in told
    assert sentence(told, fine) == "It runs now."
    assert re.fullmatch(r"Ravi already approved it at \d\d:\d\d. Nothing of yours was done to it.", sentence(told, lost))
    for escalation in (changed, previewed):
        assert sentence(told, escalation) == "The proposal or its preview changed since you looked. Nothing was decided."
    assert sentence(told, held) == "ravi holds this escalation."
    assert sentence(told, unmade).startswith("It was not shown with a clean preview")
    assert [number for number, *_ in decisions(web)] == [fine, lost]


def test_nobody_approves_their_own_requests_among_others(agent: Any, web: Any, client: Client, reviewer: Any) -> None:
    own, other = ask(agent, kind="approval", requested_by=reviewer.id), ask(agent, kind="approval")
    shown = {escalation: show(agent, escalation) for escalation in (own, other)}
    forged = [f"{escalation}:{revision}:{preview}" for escalation, (revision, preview) in shown.items()]
    told = client.post("/escalations/", {"act": "approve", "item": forged}).content.decode()
    assert sentence(told, own) == "Nobody approves their own request. Another reviewer has to."
    assert [number for number, *_ in decisions(web)] == [other]


def test_where_two_have_to_sign_one_signature_is_told_as_that(agent: Any, web: Any, client: Client) -> None:
    escalation = ask(agent, kind="approval")
    show(agent, escalation, needs=2)
    told = act(client, "approve", tray(client, escalation)).content.decode()
    assert sentence(told, escalation) == "1 of 2 signed. Another reviewer has to sign too."
    assert decisions(web) == []


def test_several_are_rejected_for_one_reason(agent: Any, web: Any, client: Client) -> None:
    both = ask(agent, kind="approval"), ask(agent, kind="approval")
    page = tray(client, *both)
    refused = act(client, "reject", page, reason="other")
    assert refused.status_code == 422
    assert "Give a reason: the agent and the staff member will read it." in refused.content.decode()
    assert ITEM.findall(refused.content.decode()) == ITEM.findall(page)  # still selected
    act(client, "reject", page, reason="target", **{"text-reject": "It is August's."})
    text = "It acts on the wrong record. It is August's."
    assert decisions(web) == [(number, "reject", text) for number in both]


def test_a_changed_proposal_is_not_rejected_for_what_it_was(agent: Any, web: Any, client: Client, ravi: int) -> None:
    escalation = ask(agent, kind="approval")
    page = tray(client, escalation)
    lifecycle.revise(web, escalation=escalation, user=ravi, calls=edited(), shown=0)
    assert act(client, "reject", page, reason="target").status_code == 409
    assert decisions(web) == []


@pytest.mark.parametrize(("kind", "verb"), [("asked", "answer"), ("infrastructure", "retry"), ("dirty_state", "close")])
def test_several_are_answered_retried_or_closed(agent: Any, web: Any, client: Client, kind: str, verb: str) -> None:
    both = ask(agent, kind=kind), ask(agent, kind=kind)
    response = act(client, verb, tray(client, *both), **{"text-answer": "The blue one."})
    assert response.status_code == 200, response.content.decode()
    assert decisions(web) == [(number, verb, "The blue one." if verb == "answer" else "") for number in both]


@pytest.mark.parametrize(
    "sent",
    [
        {"act": "approve"},
        {"act": "approve", "item": "nonsense"},
        {"act": "approve", "item": [str(number) for number in range(1, 60)]},
        {"act": "nonsense", "item": "1"},
        {"act": "expire", "item": "1"},
        {"act": "snooze", "item": "1"},
        {"act": "reassign", "item": "1"},
        {},
    ],
)
def test_what_makes_no_sense_does_nothing(client: Client, web: Any, sent: Any) -> None:
    response = client.post("/escalations/", sent)
    assert response.status_code == 422
    assert "Nothing was done" in response.content.decode()


def test_what_does_not_exist_is_told_so(client: Client) -> None:
    response = client.post("/escalations/", {"act": "claim", "item": "4711"})
    assert response.status_code == 409
    assert sentence(response.content.decode(), 4711) == "There is no escalation E-4711."


# -- claims on the page --------------------------------------------------------------------------


def one(client: Client, act: str, escalation: int) -> Any:
    return client.post("/escalations/", {"one": f"{act}:{escalation}"})


def test_a_line_is_claimed_taken_over_and_released(agent: Any, web: Any, client: Client, reviewer: Any, ravi: int) -> None:
    escalation = ask(agent)
    assert one(client, "claim", escalation).status_code == 200
    assert row(web, escalation, "claimed_by") == reviewer.id
    assert f'value="release:{escalation}"' in client.get("/escalations/").content.decode()
    lifecycle.claim(web, escalation=escalation, user=ravi, from_another=True)
    lost = one(client, "claim", escalation)
    assert lost.status_code == 409
    assert sentence(lost.content.decode(), escalation) == "ravi holds this escalation."
    assert sentence(one(client, "release", escalation).content.decode(), escalation) == "You did not hold it any more."
    assert one(client, "claim_from", escalation).status_code == 200
    assert row(web, escalation, "claimed_by") == reviewer.id
    one(client, "release", escalation)
    assert row(web, escalation, "claimed_by") is None


def test_of_two_who_claim_from_the_list_one_wins(agent: Any, web: Any, client: Client, browse: Browse) -> None:
    escalation = ask(agent)
    other = browse(person("ravi", "reviewer"))
    assert [one(who, "claim", escalation).status_code for who in (client, other)] == [200, 409]


def test_several_are_claimed_snoozed_and_assigned(agent: Any, web: Any, client: Client, reviewer: Any, ravi: int) -> None:
    both = ask(agent, kind="approval"), ask(agent)  # of whatever kind
    act(client, "claim", tray(client, *both))
    assert {row(web, number, "claimed_by") for number in both} == {reviewer.id}
    act(client, "reassign", tray(client, *both), to=ravi)
    assert {row(web, number, "claimed_by") for number in both} == {ravi}
    refused = act(client, "reassign", tray(client, *both), to=person("nina", "support").id)
    assert sentence(refused.content.decode(), both[0]) == "Choose an active reviewer."
    lifecycle.release(web, escalation=both[0], user=ravi)
    told = act(client, "snooze", tray(client, *both), until="60").content.decode()
    assert "It is hidden until" in sentence(told, both[0])
    assert sentence(told, both[1]) == "ravi holds this escalation."
    assert row(web, both[0], "snoozed_until - now() BETWEEN interval '59 min' AND interval '60 min'")


def test_a_locked_one_does_not_hold_up_the_rest(agent: Any, web: Any, connect: Callable[[str], Any], client: Client) -> None:
    locked, free = ask(agent), ask(agent)
    other = connect("web")
    with other.transaction():
        other.execute("SELECT FROM public.escalations_escalation WHERE id = %s FOR UPDATE", (locked,))
        told = client.post("/escalations/", {"act": "claim", "item": [str(locked), str(free)]}).content.decode()
    assert sentence(told, locked) == "Somebody else is changing it at this moment. Try again."
    assert sentence(told, free) == "You hold it for 15 minutes."
