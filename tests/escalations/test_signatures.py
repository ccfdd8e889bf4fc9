"""Signatures: four eyes, a quorum, and what one of them is for."""

from typing import Any

import pytest

from escalations import facts, lifecycle, previews
from tests.escalations.questions import ask, edited, made, row, show, sign
from tests.escalations.scenes import person

Web = Any


@pytest.fixture
def people(database: None) -> dict[str, int]:
    return {name: person(name, "reviewer").id for name in ("nina", "priya", "ravi", "tom")}


def test_one_signature_decides_and_waives_what_was_shown(agent: Any, web: Web, people: Any) -> None:
    escalation = ask(agent, kind="approval", requested_by=people["nina"])
    signed = sign(web, escalation, people["priya"], show(agent, escalation), text=" Fine. ")
    assert signed.decision is not None
    assert (signed.decision.kind, signed.decision.text, signed.decision.revision) == ("approve", "Fine.", 0)
    assert signed.decision.waived == [{"call_index": 0, "rule": "per_call", "measured": 60_000}]
    assert row(web, escalation) == "decided"


def test_an_edit_voids_and_lowers(agent: Any, web: Web, people: Any) -> None:
    escalation = ask(agent, kind="approval", requested_by=people["nina"])
    first = show(agent, escalation, needs=2)
    assert sign(web, escalation, people["priya"], first).decision is None
    number = lifecycle.revise(web, escalation=escalation, user=people["ravi"], calls=edited(20_000), shown=0)
    with pytest.raises(facts.Outdated):
        sign(web, escalation, people["tom"], first)
    [asked] = previews.unmade(agent, thread=row(agent, escalation, "thread"))
    assert (asked.number, asked.author, asked.calls[0]["arguments"]["amount_minor"]) == (number, people["ravi"], 20_000)
    with pytest.raises(facts.NotReady):
        sign(web, escalation, people["tom"], (number, asked.id))
    assert previews.store(agent, preview=asked.id, made=made(held=False))
    signed = sign(web, escalation, people["ravi"], (number, asked.id))
    assert signed.decision and (signed.decision.revision, signed.decision.waived) == (1, [])
