"""Claims: who works on a question, who it is passed on to, when it is looked at again, and who looks at it now."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from escalations import facts, lifecycle, presence
from tests.escalations.questions import ask, row
from tests.escalations.scenes import person


@pytest.fixture
def people(database: None) -> dict[str, int]:
    return {name: person(name, "reviewer").id for name in ("nina", "priya", "ravi")}


def acts(conn: Any, escalation: int) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = conn.execute(
        "SELECT kind, by, detail FROM public.escalations_act WHERE escalation_id = %s ORDER BY id", (escalation,)
    ).fetchall()
    return found


def test_a_claim_holds_others_off(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent)
    lifecycle.claim(web, escalation=escalation, user=people["priya"])
    lifecycle.claim(web, escalation=escalation, user=people["priya"])  # renewed
    for refused in (
        lambda: lifecycle.claim(web, escalation=escalation, user=people["ravi"]),
        lambda: lifecycle.decide(web, escalation=escalation, kind="answer", text="No.", user=people["ravi"]),
    ):
        with pytest.raises(facts.HeldByAnother, match="priya"):
            refused()
    lifecycle.release(web, escalation=escalation, user=people["ravi"])  # not theirs to give back
    assert row(web, escalation, "claimed_by") == people["priya"]


def test_a_claim_lasts_a_quarter_of_an_hour(agent: Any, web: Any, owner: Any, people: Any) -> None:
    escalation = ask(agent)
    lifecycle.claim(web, escalation=escalation, user=people["priya"])
    assert row(web, escalation, "claimed_until - now() BETWEEN interval '14 min' AND interval '15 min'")
    owner.execute("UPDATE public.escalations_escalation SET claimed_until = now() - interval '1 second'")
    lifecycle.claim(web, escalation=escalation, user=people["ravi"])
    assert row(web, escalation, "claimed_by") == people["ravi"]


def test_a_claim_can_be_taken_over(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent)
    lifecycle.claim(web, escalation=escalation, user=people["priya"])
    lifecycle.claim(web, escalation=escalation, user=people["ravi"], from_another=True)
    with pytest.raises(facts.HeldByAnother, match="ravi"):
        lifecycle.decide(web, escalation=escalation, kind="answer", text="No.", user=people["priya"])


def test_the_next_one_goes_to_one_reviewer(agent: Any, connect: Callable[[str], Any], people: Any) -> None:
    opened = {ask(agent) for _ in range(6)}
    mine = ask(agent, requested_by=people["priya"])
    desks = [connect("web") for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda conn: lifecycle.claim_next(conn, user=people["priya"]), desks))
    taken = [escalation for escalation in found if escalation]
    assert len(taken) == len(set(taken))
    assert set(taken) <= opened
    assert mine not in taken


def test_every_change_of_hands_is_an_act(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent)
    priya, ravi = people["priya"], people["ravi"]
    lifecycle.claim(web, escalation=escalation, user=priya)
    lifecycle.claim(web, escalation=escalation, user=priya)  # renewed: no news
    lifecycle.claim(web, escalation=escalation, user=ravi, from_another=True)
    lifecycle.reassign(web, escalation=escalation, user=ravi, to=priya)
    lifecycle.release(web, escalation=escalation, user=ravi)  # not theirs any more: nothing happens
    lifecycle.release(web, escalation=escalation, user=priya)
    assert acts(web, escalation) == [
        ("claimed", priya, {}),
        ("taken_from", ravi, {"from": priya}),
        ("reassigned", ravi, {"to": priya, "from": ravi}),
        ("released", priya, {}),
    ]


def test_a_claim_that_ran_out_is_claimed_not_taken(agent: Any, web: Any, owner: Any, people: Any) -> None:
    escalation = ask(agent)
    lifecycle.claim(web, escalation=escalation, user=people["priya"])
    owner.execute("UPDATE public.escalations_escalation SET claimed_until = now() - interval '1 second'")
    lifecycle.claim(web, escalation=escalation, user=people["ravi"])
    assert acts(web, escalation)[-1] == ("claimed", people["ravi"], {})


@pytest.mark.parametrize("wrong", ["support", "admin", "gone", "nobody"])
def test_it_is_passed_on_to_active_reviewers_only(agent: Any, web: Any, people: Any, wrong: str) -> None:
    to = person(wrong, wrong if wrong in ("support", "admin") else "reviewer")
    to.is_active = wrong != "gone"
    to.save(update_fields=["is_active"])
    escalation = ask(agent)
    with pytest.raises(facts.NoSuchReviewer):
        lifecycle.reassign(web, escalation=escalation, user=people["priya"], to=10**9 if wrong == "nobody" else to.id)
    assert (row(web, escalation), acts(web, escalation)) == ("open", [])


def test_what_sleeps_is_not_the_next_one_until_it_wakes(agent: Any, web: Any, owner: Any, people: Any) -> None:
    escalation, priya = ask(agent), people["priya"]
    lifecycle.claim(web, escalation=escalation, user=priya)
    due = row(web, escalation, "due_at")
    lifecycle.snooze(web, escalation=escalation, user=priya, until=timezone.now() + timedelta(hours=2))
    assert row(web, escalation, "state, claimed_by, snoozed_by, due_at") == ("open", None, priya, due)
    assert lifecycle.claim_next(web, user=people["ravi"]) is None
    owner.execute("UPDATE public.escalations_escalation SET snoozed_until = now() - interval '1 second'")
    assert lifecycle.claim_next(web, user=people["ravi"]) == escalation
    assert row(web, escalation, "snoozed_until, snoozed_by") == (None, None)


def test_it_is_woken_by_hand_once(agent: Any, web: Any, people: Any) -> None:
    escalation, until = ask(agent), timezone.now() + timedelta(hours=2)
    lifecycle.snooze(web, escalation=escalation, user=people["priya"], until=until)
    for _ in range(2):
        lifecycle.wake_up(web, escalation=escalation, user=people["ravi"])
    assert row(web, escalation, "snoozed_until") is None
    assert acts(web, escalation) == [
        ("snoozed", people["priya"], {"until": until.isoformat()}),
        ("woken", people["ravi"], {}),
    ]


@pytest.mark.parametrize("hours", [-1, 0, 71.99, 73, 24 * 8])
def test_it_sleeps_until_a_time_that_makes_sense(agent: Any, web: Any, people: Any, hours: float) -> None:
    escalation = ask(agent)  # expires after three days
    until = timezone.now() + timedelta(hours=hours)
    if hours == 71.99:
        lifecycle.snooze(web, escalation=escalation, user=people["priya"], until=until)
    else:
        with pytest.raises(facts.NotThen):
            lifecycle.snooze(web, escalation=escalation, user=people["priya"], until=until)


def test_what_somebody_else_holds_is_not_put_aside(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent)
    lifecycle.claim(web, escalation=escalation, user=people["priya"])
    with pytest.raises(facts.HeldByAnother, match="priya"):
        lifecycle.snooze(web, escalation=escalation, user=people["ravi"], until=timezone.now() + timedelta(hours=1))


# -- who looks ---------------------------------------------------------------------------------


def test_others_see_who_looks_and_who_edits(agent: Any, web: Any, people: Any) -> None:
    escalation = ask(agent)
    presence.see(web, escalation=escalation, user=people["priya"])
    presence.see(web, escalation=escalation, user=people["ravi"], editing=True)
    presence.see(web, escalation=escalation, user=people["nina"])
    found = presence.others(web, escalation=escalation, user=people["nina"])
    assert [(one.name, one.editing) for one in found] == [("ravi", True), ("priya", False)]
    presence.see(web, escalation=escalation, user=people["ravi"])
    presence.leave(web, escalation=escalation, user=people["priya"])
    assert [(one.name, one.editing) for one in presence.others(web, escalation=escalation, user=people["nina"])] == [
        ("ravi", False)
    ]


def test_whoever_is_gone_is_forgotten_on_the_way(agent: Any, web: Any, owner: Any, people: Any) -> None:
    first, second = ask(agent), ask(agent)
    presence.see(web, escalation=first, user=people["priya"])
    owner.execute("UPDATE public.escalations_presence SET seen_at = now() - interval '31 seconds'")
    assert presence.others(web, escalation=first, user=people["ravi"]) == []
    presence.see(web, escalation=second, user=people["ravi"])
    assert web.execute("SELECT escalation_id FROM public.escalations_presence").fetchall() == [(second,)]
