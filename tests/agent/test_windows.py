"""Cumulative limits: neither many small calls nor two workers at once get by."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from agent.batch import Batch, BatchResult, run_batch
from agent.tools import Tool, registry
from tests.agent.approved import approved, everything, preview
from tests.agent.batches import Desk, hold_thread, make_customer

RULES = ["customer_day", "staff_day", "conversation"]


def invoice(month: int, amount: int = 1000) -> tuple[str, dict[str, Any]]:
    return ("CreateInvoice", {"billing_period": f"2026-{month:02}-01", "amount_minor": amount, "currency": "EUR"})


def run(desk: Desk, batch: Batch, **details: Any) -> BatchResult:
    return run_batch(desk.pool, batch=batch, **details)


@pytest.mark.parametrize("rule", RULES)
def test_small_calls_add_up(desk: Desk, rule: str) -> None:
    desk.set_policy(rule, 2500)
    assert run(desk, desk.batch(invoice(1), invoice(2))).kind == "applied"
    held = run(desk, desk.batch(invoice(3, 400), invoice(4, 600)))
    (verdict,) = held.verdicts
    assert (held.kind, verdict.rule, verdict.call_index, verdict.measured, verdict.allowed) == ("held", rule, 1, 3000, 2500)
    assert run(desk, desk.batch(invoice(3, 500))).kind == "applied"  # up to the limit, not over it
    assert desk.count("billing_invoice") == 3


def test_currencies_do_not_mix_and_one_can_have_its_own_limit(desk: Desk) -> None:
    desk.set_policy("staff_day", 1500)
    desk.set_policy("staff_day", 3000, currency="EUR")
    dollars = replace(desk, customer=make_customer(desk.owner, currency="USD"))
    assert run(desk, desk.batch(invoice(1), invoice(2))).kind == "applied"
    other = ("CreateInvoice", {"billing_period": "2026-01-01", "amount_minor": 1501, "currency": "USD"})
    assert run(desk, dollars.batch(other, ai_message_id="usd")).kind == "held"


# -- under lock: the gate has let both pass --------------------------------------------------------


def together(workers: int) -> dict[str, Tool]:
    """Return the tools with one that begins in all workers at once, when each has passed the gate."""
    barrier, tools = threading.Barrier(workers, timeout=20), dict(registry())

    def create(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        barrier.wait()
        return dict(tools["CreateInvoice"].run(conn, arguments, cause))

    return tools | {"CreateInvoice": replace(tools["CreateInvoice"], run=create)}


def side_by_side(desk: Desk, batches: list[Batch]) -> list[BatchResult]:
    """Run the batches in threads of their own, past the gate together."""
    tools = together(len(batches))
    with ThreadPoolExecutor(len(batches)) as workers:
        return list(workers.map(lambda batch: run(desk, batch, tools=tools), batches))


@pytest.mark.parametrize("rule", ["customer_day", "staff_day"])
def test_two_workers_cannot_pass_together(desk: Desk, rule: str) -> None:
    desk.set_policy(rule, 1500)
    other = replace(desk, thread=hold_thread(desk.owner))
    if rule == "staff_day":  # two customers: no row is shared but the sum
        other = replace(other, customer=make_customer(desk.owner))
    results = side_by_side(desk, [desk.batch(invoice(1)), other.batch(invoice(2))])
    assert sorted(result.kind for result in results) == ["applied", "held"]
    (verdict,) = next(result.verdicts for result in results if result.kind == "held")
    assert (verdict.rule, verdict.measured, verdict.allowed, verdict.call_index) == (rule, 2000, 1500, 0)
    assert desk.count("billing_invoice") == desk.count("ledger_execution") == desk.count("agent_window", "amount = 1000") / 3 == 1


def test_what_went_over_is_held_untold_and_leaves_nothing_but_that(desk: Desk) -> None:
    desk.set_policy("customer_day", 1500)
    other = replace(desk, thread=hold_thread(desk.owner))
    before = everything(desk)
    results = side_by_side(desk, [desk.batch(invoice(1)), other.batch(invoice(2))])
    held = next(result for result in results if result.kind == "held")
    outcome = next(row for row in desk.outcomes() if row["outcome"] == "held")
    assert (outcome["attempt_id"], outcome["told"], outcome["sqlstate"]) == (held.attempt_id, None, "BS002")
    assert [problem["rule"] for problem in outcome["problems"]] == ["customer_day"]
    after = everything(desk)
    assert (after["ledger_attempt"], after["ledger_attempt_outcome"]) == (2, 2)
    assert after["ledger_batch_abort"] == before["ledger_batch_abort"] == 0


def test_eight_workers_never_get_over_the_limit(desk: Desk) -> None:
    desk.set_policy("staff_day", 3000)
    desks = [replace(desk, thread=hold_thread(desk.owner), customer=make_customer(desk.owner)) for _ in range(4)]
    results = side_by_side(desk, [each.batch(invoice(1)) for each in desks])
    assert sorted(result.kind for result in results) == ["applied"] * 3 + ["held"]
    assert desk.scalar("SELECT amount FROM public.agent_window WHERE scope = 'staff:7'") == 3000


# -- approved --------------------------------------------------------------------------------------


def test_what_was_approved_passes_up_to_what_was_shown(desk: Desk) -> None:
    desk.set_policy("customer_day", 1500)
    assert run(desk, desk.batch(invoice(1))).kind == "applied"
    batch = desk.batch(invoice(2))
    made = preview(desk, batch)
    assert [(v["rule"], v["measured"]) for v in made.verdicts] == [("customer_day", 2000)]
    assert run(desk, approved(batch, made)).kind == "applied"
    assert desk.scalar("SELECT amount FROM public.agent_window WHERE scope LIKE 'customer:%%'") == 2000


def test_more_than_what_was_shown_is_held_again(desk: Desk) -> None:
    desk.set_policy("customer_day", 1500)
    assert run(desk, desk.batch(invoice(1))).kind == "applied"
    batch = desk.batch(invoice(2))
    made = preview(desk, batch)
    assert run(desk, desk.batch(invoice(3, 500))).kind == "applied"  # meanwhile
    again = run(desk, approved(batch, made))
    assert (again.kind, [verdict.measured for verdict in again.verdicts]) == ("held", [2500])


def test_a_sum_that_rises_between_gate_and_commit_holds_what_was_approved(desk: Desk) -> None:
    desk.set_policy("staff_day", 1500)
    assert run(desk, desk.batch(invoice(1))).kind == "applied"
    other = replace(desk, thread=hold_thread(desk.owner), customer=make_customer(desk.owner))
    batches = [desk.batch(invoice(2)), other.batch(invoice(2))]
    decided = [approved(batch, preview(desk, batch)) for batch in batches]  # each was shown 2000
    results = side_by_side(desk, decided)
    assert sorted(result.kind for result in results) == ["applied", "held"]
    assert [verdict.measured for result in results for verdict in result.verdicts] == [3000]
