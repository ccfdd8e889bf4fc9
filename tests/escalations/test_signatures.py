"""Signatures: four eyes, a quorum, and what one of them is for. What code says first, the database says too."""

from typing import Any

import pytest
from psycopg import errors

from escalations import facts, lifecycle, permissions, previews
from escalations.models import Escalation
from tests.escalations.questions import ask, edited, made, row, show, sign
from tests.escalations.scenes import person

Web = Any


@pytest.fixture
def people(database: None) -> dict[str, int]:
    return {name: person(name, "reviewer").id for name in ("nina", "priya", "ravi", "tom")}


def revise(web: Web, escalation: int, user: int, calls: Any, *, shown: int = 0, **more: Any) -> int:
    return lifecycle.revise(web, escalation=escalation, user=user, calls=calls, shown=shown, **more)


def signatures(web: Web) -> int:
    found = web.execute("SELECT count(*) FROM public.escalations_signature").fetchone()
    return int(found[0])


def wrote(owner: Any, escalation: int, author: int, *, state: str = "taken") -> None:
    """Let somebody else write in the conversation that it comes from."""
    owner.execute(
        "INSERT INTO public.agent_staff_message (id, thread, number, author, text, state, taken_at)"
        " SELECT gen_random_uuid(), thread, 1, %s, 'Invoice it', %s, clock_timestamp()"
        " FROM public.escalations_escalation WHERE id = %s",
        (author, state, escalation),
    )


# -- one signature ------------------------------------------------------------------------------


def test_one_signature_decides_and_waives_what_was_shown(agent: Any, web: Web, people: Any) -> None:
    escalation = ask(agent, kind="approval", requested_by=people["nina"])
    shown = show(agent, escalation)
    signed = sign(web, escalation, people["priya"], shown, text=" Fine. ")
    assert signed.decision is not None
    assert (signed.decision.kind, signed.decision.text, signed.decision.revision) == ("approve", "Fine.", 0)
    assert signed.decision.waived == [{"call_index": 0, "rule": "per_call", "measured": 60_000}]
    assert row(web, escalation) == "decided"
    kept = web.execute(
        "SELECT s.reviewer, s.requested_by, s.asked, s.editor, s.lowers, s.allowed, d.preview_id, d.needs, d.signed"
        " FROM public.escalations_signature s JOIN public.escalations_decision d USING (escalation_id)"
    ).fetchall()
    assert kept == [(people["priya"], people["nina"], False, None, False, False, shown[1], 1, 1)]


def test_what_is_signed_is_what_is_newest(agent: Any, web: Web, people: Any) -> None:
    escalation = ask(agent, kind="approval")
    first = show(agent, escalation)
    second = show(agent, escalation)  # asked for again
    for stale in (first, (1, second[1]), (0, second[1] + 1)):
        with pytest.raises(facts.Outdated):
            sign(web, escalation, people["priya"], stale)
    assert sign(web, escalation, people["priya"], second).decision


@pytest.mark.parametrize("outcome", [None, "fails", "invalid", "refused", "unavailable"])
def test_only_what_went_through_is_signed(agent: Any, web: Web, people: Any, outcome: Any) -> None:
    escalation = ask(agent, kind="approval")
    if outcome is None:
        shown = (0, previews.unmade(agent, thread=row(web, escalation, "thread"))[0].id)
    else:
        shown = show(agent, escalation, outcome)
    with pytest.raises(facts.NotReady) as refused:
        sign(web, escalation, people["priya"], shown)
    assert (refused.value.outcome, row(web, escalation), signatures(web)) == (outcome, "open", 0)


def test_a_preview_is_made_once(agent: Any, web: Web) -> None:
    escalation = ask(agent, kind="approval")
    [asked] = previews.unmade(agent, thread=row(web, escalation, "thread"))
    assert (asked.escalation, asked.number, asked.kind, asked.ai_message_id) == (escalation, 0, "approval", "ai-1")
    assert previews.ask(agent, revision=asked.revision, user=None) == asked.id  # it waits already
    assert previews.store(agent, preview=asked.id, made=made())
    assert not previews.store(agent, preview=asked.id, made=made("fails"))
    assert previews.unmade(agent, thread=row(web, escalation, "thread")) == []
    with pytest.raises(errors.InsufficientPrivilege, match="not changed"):
        agent.execute("UPDATE public.escalations_preview SET needs = 1")


def test_nobody_waits_for_the_preview_of_what_is_decided(agent: Any, web: Web, people: Any) -> None:
    escalation = ask(agent, kind="approval")
    lifecycle.decide(web, escalation=escalation, kind="reject", text="No.", user=people["priya"])
    assert previews.unmade(agent, thread=row(web, escalation, "thread")) == []


# -- four eyes ----------------------------------------------------------------------------------


def test_nobody_approves_their_own_request(agent: Any, web: Web, people: Any) -> None:
    escalation = ask(agent, kind="approval", requested_by=people["nina"])
    with pytest.raises(facts.OwnRequest):
        sign(web, escalation, people["nina"], show(agent, escalation))


@pytest.mark.parametrize(("state", "asked"), [("taken", True), ("cancelled", False), ("queued", False)])
def test_whoever_wrote_to_the_agent_does_not_approve_what_came_of_it(
    agent: Any, web: Web, owner: Any, people: Any, state: str, asked: bool
) -> None:
    escalation = ask(agent, kind="approval", requested_by=people["nina"])
    wrote(owner, escalation, people["priya"], state=state)
    assert permissions.user_can_approve(person("priya"), Escalation.objects.get(pk=escalation)) == (not asked)
    shown = show(agent, escalation)
    if asked:
        with pytest.raises(facts.OwnRequest):
            sign(web, escalation, people["priya"], shown)
    else:
        assert sign(web, escalation, people["priya"], shown).decision


@pytest.mark.parametrize("asked_again", [False, True])
def test_whoever_answered_the_agent_does_not_approve_what_it_made_of_it(
    agent: Any, web: Web, owner: Any, people: Any, asked_again: bool
) -> None:
    first = ask(agent, kind="approval", requested_by=people["nina"])
    lifecycle.decide(web, escalation=first, kind="answer", text="Credit €600.", user=people["priya"])
    if asked_again:  # then it is a request of theirs, with the answer before their eyes
        wrote(owner, first, people["nina"])
    thread = row(web, first, "thread")
    escalation = ask(agent, kind="approval", requested_by=people["nina"], thread=thread, interrupt_id="next", object="next")
    shown = show(agent, escalation)
    assert permissions.user_can_approve(person("priya"), Escalation.objects.get(pk=escalation)) == asked_again
    if not asked_again:
        with pytest.raises(facts.OwnAnswer):
            sign(web, escalation, people["priya"], shown)
    assert sign(web, escalation, people["priya" if asked_again else "ravi"], shown).decision


@pytest.mark.parametrize(
    ("calls", "held", "may"),
    [
        (edited(20_000), False, True),  # a lower amount that the limits allow
        (edited(20_000), True, False),  # still held
        (edited(70_000), False, False),  # raised
        (edited(20_000, reason="Outage and more"), False, False),  # another reason is not a lower amount
        (edited(20_000, currency="USD"), False, False),  # nor is another currency
        (edited(drop=0), False, True),  # a call less
        (edited(20_000, drop=1), False, True),
    ],
)
def test_an_editor_signs_only_what_lowers_and_is_allowed(
    agent: Any, web: Web, people: Any, calls: Any, held: bool, may: bool
) -> None:
    escalation = ask(agent, kind="approval", requested_by=people["nina"])
    revise(web, escalation, people["priya"], calls)
    shown = show(agent, escalation, held=held)
    if may:
        decision = sign(web, escalation, people["priya"], shown).decision
    else:
        with pytest.raises(facts.OwnEdit):
            sign(web, escalation, people["priya"], shown)
        decision = sign(web, escalation, people["ravi"], shown).decision  # somebody else may
    assert decision
    assert (decision.kind, decision.revision) == ("approve", 1)


def test_the_second_editor_is_the_author_of_what_the_first_one_wrote_too(agent: Any, web: Web, people: Any) -> None:
    escalation = ask(agent, kind="approval")
    revise(web, escalation, people["priya"], edited(20_000))
    revise(web, escalation, people["ravi"], edited(70_000), shown=1)
    shown = show(agent, escalation, held=False)
    with pytest.raises(facts.OwnEdit):
        sign(web, escalation, people["ravi"], shown)
    assert sign(web, escalation, people["priya"], shown).decision


@pytest.mark.parametrize("held", [True, False])
def test_whoever_takes_over_needs_another_person_above_the_limits(agent: Any, web: Web, people: Any, held: bool) -> None:
    escalation = ask(agent, kind="approval", requested_by=people["nina"])
    same = [{"index": call["index"], "arguments": call["arguments"]} for call in edited(60_000)]
    revise(web, escalation, people["priya"], same, as_person=True, text="I do it myself.")
    shown = show(agent, escalation, held=held)
    if held:
        with pytest.raises(facts.OwnEdit):
            sign(web, escalation, people["priya"], shown)
    decision = sign(web, escalation, people["ravi" if held else "priya"], shown).decision
    assert decision
    assert (decision.kind, decision.revision) == ("take_over", 1)


# -- two signatures -----------------------------------------------------------------------------


def test_two_have_to_sign_above_the_second_limit(agent: Any, web: Web, people: Any) -> None:
    escalation = ask(agent, kind="approval", requested_by=people["nina"])
    lifecycle.claim(web, escalation=escalation, user=people["priya"])
    shown = show(agent, escalation, needs=2)
    first = sign(web, escalation, people["priya"], shown)
    assert (first.decision, first.signatures, first.needs, row(web, escalation)) == (None, 1, 2, "open")
    with pytest.raises(facts.SignedAlready):
        sign(web, escalation, people["priya"], shown)
    second = sign(web, escalation, people["ravi"], shown)
    assert second.decision
    assert (second.decision.name, second.signatures) == ("ravi", 2)


@pytest.mark.parametrize(
    ("again", "counts"),
    [({}, True), ({"digest": b"other"}, False), ({"verdicts": []}, False)],
)
def test_signatures_count_together_when_they_saw_the_same(
    agent: Any, web: Web, people: Any, again: dict[str, Any], counts: bool
) -> None:
    escalation = ask(agent, kind="approval")
    sign(web, escalation, people["priya"], show(agent, escalation, needs=2))
    shown = show(agent, escalation, needs=2, **again)
    signed = sign(web, escalation, people["ravi"], shown)
    assert bool(signed.decision) == counts
    if not counts:
        assert sign(web, escalation, people["priya"], shown).decision  # sees it as it is now, and signs again


def test_one_person_who_signs_twice_is_one_person(agent: Any, web: Web, people: Any) -> None:
    escalation = ask(agent, kind="approval")
    for _ in range(2):  # both previews show the same
        signed = sign(web, escalation, people["priya"], show(agent, escalation, needs=2))
    assert (signed.decision, signed.signatures) == (None, 1)


def test_a_new_revision_voids_earlier_signatures(agent: Any, web: Web, people: Any) -> None:
    escalation = ask(agent, kind="approval")
    first = show(agent, escalation, needs=2)
    sign(web, escalation, people["priya"], first)
    revise(web, escalation, people["ravi"], edited(20_000))
    with pytest.raises(facts.Outdated):
        sign(web, escalation, people["tom"], first)
    assert sign(web, escalation, people["tom"], show(agent, escalation, needs=2)).signatures == 1
