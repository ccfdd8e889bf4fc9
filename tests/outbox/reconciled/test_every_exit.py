"""Every exit that is offered for every kind of disagreement: it ends it, or says in one sentence why not and changes nothing."""

from typing import Any, get_args

import pytest

from escalations import policies
from ledger import invariants, reconciling
from outbox import sweeps
from tests.agent import takeovers
from tests.escalations import scanned
from tests.escalations.questions import row
from tests.escalations.scanned import CLEAN
from tests.outbox.desk import Desk
from tests.outbox.reconciled import of_books, of_conversations, of_messages, of_objects
from tests.outbox.reconciled.worlds import Scenario, World

SCENARIOS = {
    **of_messages.SCENARIOS, **of_objects.SCENARIOS, **of_books.SCENARIOS, **of_conversations.SCENARIOS
}  # fmt: skip
IMPOSSIBLE = "not possible: "
MOVES = {"resend", "refund"}  # what these ask for is delivered afterwards
# What was changed by hand is known to nobody.
UNSEEN = {"billing.books_as_last_changed", "billing.amount_due_adds_up"}


@pytest.fixture
def world(desk: Desk, agent_pool: Any, superuser: Any, web: Any, outbox: Any) -> World:
    return World(desk=desk, agent_pool=agent_pool, superuser=superuser, web=web, outbox=outbox)


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_exit_that_is_offered_ends_it_or_says_why_not(world: World, keeper: Any, name: str) -> None:
    scenario = SCENARIOS[name]
    world.provider = scenario.check == "outbox.provider"
    about, left = scenario.make(world), list(scenario.exits)
    if scenario.exits.get("compensate") == "":  # a note: everything is as it was, for the other exits
        left.remove("compensate")
        noted(world, scenario, about)
    for number, exit_ in enumerate(left):
        if number:
            world.begin_again()
            about = scenario.make(world)
        case = asked(world, scenario, about)
        comes = scenario.exits[exit_]
        if comes.startswith(IMPOSSIBLE):
            refused(world, case, exit_, about, why=comes)
        else:
            ended(world, scenario, case, exit_)
            agree(keeper, exit_)


def asked(world: World, scenario: Scenario, about: str) -> int:
    """See that it is asked about, with these exits and no other, and return the question."""
    case = world.asked_about(about)
    assert row(world.outbox, case, "payload ->> 'check'") in (scenario.check, None)
    assert world.offered(case) == set(scenario.exits)
    return case


def noted(world: World, scenario: Scenario, about: str) -> None:
    """See that a note changes nothing, and that the same is not asked again until the facts are others."""
    case, before = asked(world, scenario, about), world.money()
    assert world.settle(case, "compensate") == ""
    assert world.money() == before
    assert (world.scan(), scanned.asked(world.outbox)) == (CLEAN, [])
    world.change_facts()


def refused(world: World, case: int, exit_: str, about: str, *, why: str) -> None:
    """See that nothing was done, that a sentence says why, and that it is asked about anew."""
    before, moved = world.money(), world.moved()
    assert world.settle(case, exit_).startswith(why)
    assert (world.money(), world.moved()) == (before, moved)
    again = world.asked_about(about)
    follows, said = row(world.outbox, again, "follows_id, payload ->> 'before'")
    assert (follows, said.startswith(why)) == (case, True)


def ended(world: World, scenario: Scenario, case: int, exit_: str) -> None:
    """See that the exit brought everything where it should be, that no money moved but what was asked for, and a clean scan."""
    comes, moved = scenario.exits[exit_], world.moved()
    if scenario.check == "billing.invoices":
        assert ("owed to nobody, and can be sent back" in world.page(case)) is (exit_ in scenario.strays)
    said = world.settle(case, exit_)
    assert not said.startswith(IMPOSSIBLE), said
    assert world.moved() == moved
    if scenario.check.startswith("billing."):
        assert "What it changed in the books" in world.page(case)
    if exit_ in scenario.strays:
        sent_back(world, case, comes)
    if exit_ in MOVES:
        world.deliver()
    if exit_ not in scenario.strays:
        assert world.stands(case) == comes
    if exit_ == "replay_thread":
        takeovers.check(world.talk)
    found, opened, _, error = world.scan()  # what disagreed besides is cleared
    assert (found, opened, error, scanned.asked(world.outbox)) == (0, 0, "", [])


def sent_back(world: World, case: int, comes: str) -> None:
    """See that a person is asked about money that nobody owes, and have it sent back."""
    assert world.stands(case) == comes
    [(stray, about, kind, _)] = scanned.asked(world.outbox)
    assert (about.partition(":")[0], kind, world.offered(stray)) == ("message", "dirty_state", {"refund"})
    assert "is queued" in world.settle(stray, "refund")
    world.deliver()


def agree(keeper: Any, exit_: str) -> None:
    """Let the invariants of the books hold after what changes them; a replay is held to its own by the agent's tests."""
    if exit_ == "replay_thread":
        return
    every = [one for one in invariants.every() if one.name.startswith("billing.") and one.name not in UNSEEN]
    found = invariants.findings(keeper, quiet=False, invariants=every)
    assert [one.invariant.name for one in found if not one.holds] == []


def test_the_table_is_whole() -> None:
    assert {one.check for one in SCENARIOS.values()} == {check.name for check in reconciling.every()}
    assert {name for one in SCENARIOS.values() for name in one.exits} == set(policies.EXITS)
    kinds = {name.partition(":")[0] for name in of_objects.SCENARIOS}
    assert kinds == set(get_args(sweeps.Kind))
