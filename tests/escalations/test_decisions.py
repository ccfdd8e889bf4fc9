"""The list of decisions: what it shows, how it is narrowed, what it costs."""

import uuid
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from escalations import lifecycle
from ledger import links
from tests.escalations.scenes import Scene, person

Begin = Callable[..., Scene]
Browse = Callable[[Any], Client]


def test_decisions_are_listed_and_narrowed(scene: Begin, browse: Browse, web: Any, agent: Any, reviewer: Any) -> None:
    ravi = person("ravi", "reviewer")
    held = scene(name="Sample Cycles BV")
    first, second, third = held.approval(), scene(name="Other").asked(), scene(name="Third").budget()
    [preview] = held.previews()
    lifecycle.sign(web, escalation=first, user=reviewer.id, revision=0, preview=preview)
    lifecycle.decide(web, escalation=second, kind="answer", text="The blue contract.", user=ravi.id)
    lifecycle.expire(agent, escalation=third, text="")
    client = browse(person("boss", "admin"))
    every = {first, second, third}
    expected = {
        "": every,
        "?decision=approve": {first},
        "?kind=asked": {second},
        "?person=rav": {second},
        "?customer=cycles": {first},
        "?q=blue": {second},
        f"?q=E-{third}": {third},
        "?since=2000-01-01": every,
        "?until=2000-01-01": set(),
        "?since=nonsense": set(),
    }
    for query, wanted in expected.items():
        page = client.get(f"/decisions/{query}").content.decode()
        assert {one for one in every if f">E-{one}</a>" in page} == wanted, query


def test_a_settled_escalation_is_told_as_the_systems_decision(scene: Begin, browse: Browse, agent: Any) -> None:
    made = scene(name="Sample Cycles BV")
    escalation = made.opens("infrastructure", reason="The conversation could not go on.", interrupt=None)
    assert lifecycle.settle(agent, object=f"thread:{made.thread}", text="It went on.")
    client = browse(person("boss", "admin"))
    for path in (f"/escalations/{escalation}/", "/decisions/?decision=settle"):
        page = client.get(path).content.decode()
        assert "Settled" in page, path
        assert "It went on." in page, path
    assert f"/escalations/{escalation}/" in client.get("/escalations/?view=done").content.decode()
    talk = links.conversations([made.thread])[made.thread]
    assert "Nobody has to look any more: “It went on.”" in client.get(f"/conversations/{talk}/").content.decode()


def test_the_decisions_cost_the_same_for_many(scene: Begin, browse: Browse, owner: Any, web: Any, reviewer: Any) -> None:
    client = browse(reviewer)
    lifecycle.decide(web, escalation=scene().asked(), kind="answer", text="Yes.", user=reviewer.id)
    with CaptureQueriesContext(connection) as few:
        client.get("/decisions/")
    for _ in range(12):
        with owner.transaction():
            escalation = lifecycle.open(owner, kind="dirty_state", object=f"x:{uuid.uuid4()}", payload={"reason": "Why."})
            lifecycle.decide(owner, escalation=escalation, kind="close", text="", user=reviewer.id)
    with CaptureQueriesContext(connection) as lots:
        client.get("/decisions/")
    assert len(lots) == len(few)
