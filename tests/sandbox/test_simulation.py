"""`manage.py simulate`: what fails and when, a small run that must be clean, and a judge who must not miss anything."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from config import logins
from sandbox.chaos.places import NOT_OURS
from sandbox.simulation import failures, places, runs, verdicts
from sandbox.simulation.orders import Order
from sandbox.simulation.places import Place
from sandbox.simulation.reports import Report
from sandbox.stripe import faults
from sandbox.supervisor import supervision
from tests import databases, plugin, servers

Connection = psycopg.Connection[Any]
CHARGES, REFUNDS, SEED = 20, 8, 1
FIRST_OF_OURS = 8  # the broker's databases below are those of other tests


# -- what fails --------------------------------------------------------------------------------
def test_the_failures_follow_from_the_seed() -> None:
    assert [*failures.rules(seed=7)] == [*failures.rules(seed=7)]
    assert [*failures.rules(seed=7)] != [*failures.rules(seed=8)]


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_the_failures_of_a_method_strike_as_many_calls_as_they_should(method: str) -> None:
    passed = 1.0
    for _, rule in failures.rules(seed=1):
        if rule["method"] == method:
            passed *= 1 - rule["probability"]
    assert passed == pytest.approx(1 - failures.SHARE)


def test_the_sandbox_knows_every_failure() -> None:
    for number, (_, rule) in enumerate(failures.rules(seed=1)):
        assert faults.rule_of(dict(rule), rule_id=number).probability > 0


def test_no_process_hears_of_real_things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = {name: f"real {name}" for name in NOT_OURS}
    for name, value in real.items():
        monkeypatch.setenv(name, value)

    started = places.wanted(tmp_path, places.content(broker="redis://127.0.0.1/0"))

    assert [part.name for part in started] == ["stripe", "web", *places.RELAYS]
    assert not [value for part in started for value in part.environment.values() if value in real.values()]


# -- a small run -------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Run the simulation's processes on a database of its own."""
    data, name = tmp_path_factory.mktemp("simulation") / "instance", databases.clone(plugin.ADMIN)
    supervision.make_directories(data)
    broker = servers.numbered(address=servers.broker(), number=FIRST_OF_OURS + servers.process())
    content = places.content(broker=broker)
    content["database"] = {login: databases.address(admin=plugin.ADMIN, database=name, login=login) for login in logins.NAMES}
    content["database"]["superuser"] = databases.address(admin=plugin.ADMIN, database=name)
    try:
        with places.running(data, content) as made:
            yield made
    finally:
        databases.drop(plugin.ADMIN, name)


@pytest.fixture(scope="module")
def report(place: Place) -> Report:
    """Return what a small run found."""
    return runs.run(place, charges=CHARGES, refunds=REFUNDS, seed=SEED, say=lambda line: None)


@pytest.mark.timeout(120)
def test_nothing_is_double_lost_or_wrong(report: Report) -> None:
    assert report.fine, "\n".join(report.lines())
    settled = {kind: sum(counted.values()) for kind, counted in report.outcomes.items()}
    assert settled == {"charge": CHARGES, "refund": report.refunds}


def test_calls_failed_messages_paused_and_the_provider_was_asked(report: Report) -> None:
    assert report.refunds == REFUNDS
    assert report.fault_share == pytest.approx(failures.SHARE, abs=0.15)
    assert 0 < report.pauses < report.failures
    assert report.hours > 24
    assert report.counts["look_ups"] > 0


def test_the_report_can_be_read_by_programs(report: Report) -> None:
    found = json.loads(report.as_json())
    assert found["fine"]
    assert found["outcomes"] == report.outcomes
    assert sum(found["faults"].values()) > CHARGES


# -- the judge ---------------------------------------------------------------------------------
@pytest.fixture
def movements(place: Place, report: Report) -> list[dict[str, Any]]:
    """Return the money log of the run."""
    found: list[dict[str, Any]] = place.provider.control("GET", "money")["movements"]
    return found


@pytest.fixture
def rows(place: Place, report: Report) -> Iterator[Connection]:
    """Return a connection whose changes are taken back."""
    with closing(place.connect("superuser")) as conn, conn.transaction(force_rollback=True):
        conn.execute("SET LOCAL session_replication_role = replica")  # no trigger minds
        yield conn


def orders(conn: Connection) -> list[Order]:
    """Return what the books say that was asked for."""
    query = """
        SELECT 'charge', id, id, amount_minor, currency FROM public.billing_invoice
        UNION ALL SELECT 'refund', r.id, p.invoice_id, r.amount_minor, r.currency
        FROM public.billing_refund r JOIN public.billing_payment p ON p.id = r.payment_id"""
    names = ("kind", "number", "invoice", "amount_minor", "currency")
    return [Order(**dict(zip(names, row, strict=True))) for row in conn.execute(query).fetchall()]


def judged(conn: Connection, moved: list[dict[str, Any]], more: tuple[Order, ...] = ()) -> tuple[int, int, int]:
    """Return how much is double, lost and wrong."""
    found = verdicts.judge(conn, orders=[*orders(conn), *more], movements=moved)
    return len(found.double), len(found.lost), len(found.wrong)


def test_what_happened_is_fine(rows: Connection, movements: list[dict[str, Any]]) -> None:
    assert judged(rows, movements) == (0, 0, 0)


@pytest.mark.parametrize("kind", ["charge", "refund"])
def test_what_moved_twice_is_double(rows: Connection, movements: list[dict[str, Any]], kind: str) -> None:
    again = next(one for one in movements if one["kind"] == kind)
    assert judged(rows, [*movements, again])[0] == 1


def test_what_nobody_asked_for_is_double(rows: Connection, movements: list[dict[str, Any]]) -> None:
    assert judged(rows, [*movements, movements[0] | {"metadata": {}}]) == (1, 0, 0)


def test_what_did_not_move_is_reported_wrongly(rows: Connection, movements: list[dict[str, Any]]) -> None:
    paid = next(one for one in movements if one["kind"] == "charge")
    assert judged(rows, [one for one in movements if one is not paid]) == (0, 0, 1)


def test_another_amount_is_reported_wrongly(rows: Connection, movements: list[dict[str, Any]]) -> None:
    paid = next(one for one in movements if one["kind"] == "charge")
    assert judged(rows, [one | {"amount": one["amount"] + 1} if one is paid else one for one in movements]) == (0, 0, 1)


def test_a_payment_that_the_books_do_not_hold_is_reported_wrongly(rows: Connection, movements: list[dict[str, Any]]) -> None:
    rows.execute("DELETE FROM public.billing_payment WHERE id = (SELECT max(id) FROM public.billing_payment)")
    assert judged(rows, movements)[2] == 1


def test_an_order_that_left_nothing_is_lost(rows: Connection, movements: list[dict[str, Any]]) -> None:
    order = Order(kind="charge", number=9_999, invoice=9_999, amount_minor=500, currency="EUR")
    assert judged(rows, movements, (order,)) == (0, 1, 0)


def test_an_unsettled_order_is_lost_unless_a_person_is_asked(rows: Connection, movements: list[dict[str, Any]]) -> None:
    rows.execute(
        "UPDATE public.billing_invoice SET status = 'charge_queued'"
        " WHERE id = (SELECT max(id) FROM public.billing_invoice WHERE status = 'paid')"
    )
    assert judged(rows, movements) == (0, 1, 0)


def test_what_was_sent_again_without_a_look_is_blind(rows: Connection, movements: list[dict[str, Any]]) -> None:
    assert not verdicts.judge(rows, orders=orders(rows), movements=movements).blind
    looked = rows.execute("DELETE FROM public.outbox_delivery WHERE step = 'lookup' AND outcome IN ('absent', 'unsent')")
    assert looked.rowcount
    assert verdicts.judge(rows, orders=orders(rows), movements=movements).blind


# -- arguments ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--charges", "0"), "--charges is a number from 1 to 5000."),
        (("--refunds", "-1"), "--refunds is a number from 0 to 5000."),
    ],
)
def test_a_wrong_argument_gets_one_sentence(given: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("simulate", *given)
    assert str(refused.value) == sentence
