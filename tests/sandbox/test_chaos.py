"""`manage.py chaos`: the plan of a seed, a short run that must be clean, and one on broken books that must not be."""

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from random import Random
from typing import Any

import pytest
from django.test import Client
from langchain_core.messages import HumanMessage, SystemMessage

from ledger import faults
from sandbox.chaos import people, plans, strikes, words
from sandbox.chaos.crowds import EXITS
from sandbox.chaos.places import Place, own
from sandbox.chaos.strikes import KILL_EVERY, POINTS
from sandbox.offline.model import OfflineModel
from tests.agent import conftest as agent_fixtures
from tests.agent.scenes import make_user
from tests.agent.scripts import calls, says
from tests.agent.talks import Talk
from tests.escalations import scanned
from tests.outbox import conftest as outbox_fixtures
from tests.outbox.desk import Desk
from tests.sandbox.offline_talks import PROMPT
from tests.stack import manage

sandbox, provider, outbox_address = outbox_fixtures.sandbox, outbox_fixtures.provider, outbox_fixtures.outbox_address
desk, talk = outbox_fixtures.desk, agent_fixtures.talk
DAY = date(2026, 11, 30)
QUICK = {"BACKSTOP_LEASE_SECONDS": "21", "BACKSTOP_HEARTBEAT_SECONDS": "6"}
# Whatever cuts off a delivery costs the outbox's lease of two minutes: `make chaos` has the time.
PARTS = "agent,web,keeper,beat,valkey"
KILLS = ("kill", "point", "immediate")


def plan(seed: int, **more: Any) -> plans.Plan:
    return plans.make(**{"seed": seed, "clients": 8, "seconds": 120, "today": DAY} | more)


# -- the plan ----------------------------------------------------------------------------------
def test_a_seed_always_makes_the_same_plan() -> None:
    assert plan(7) == plan(7)


def test_another_seed_makes_another_plan() -> None:
    first, second = plan(7), plan(8)
    assert first.strikes != second.strikes
    assert first.clients != second.clients
    assert first.cast != second.cast


def test_the_command_prints_the_same_plan_in_every_process() -> None:
    printed = [manage("chaos", "--seed", "3", "--seconds", "10", "--clients", "2", "--plan").stdout for _ in range(2)]
    assert printed[0] == printed[1]
    assert json.loads(printed[0])["seed"] == 3


@pytest.mark.parametrize("seed", range(1, 6))
def test_two_minutes_hold_more_than_fifty_kills_of_every_part(seed: int) -> None:
    kills = [strike for strike in plan(seed).strikes if strike.kind in KILLS]
    assert len(kills) >= 120 / KILL_EVERY[1] > 50
    assert {strike.part for strike in kills} == strikes.PARTS.keys()


def test_a_plan_has_every_kind_of_fault_and_no_fault_after_its_time() -> None:
    found = [strike for seed in range(1, 6) for strike in plan(seed).strikes]
    assert {strike.kind for strike in found} == {*KILLS, *dict(strikes.HARMS)}
    assert max(strike.at for strike in found) < 120


def test_a_plan_hits_only_the_parts_that_it_may() -> None:
    assert {strike.part for strike in plan(1, parts=("web", "valkey")).strikes} == {"web", "valkey"}


def test_every_point_is_one_that_its_part_comes_by() -> None:
    planned = [strike.fault for strike in plan(1).strikes if strike.fault]
    assert planned
    assert all(faults.parse(fault) for fault in planned)
    known = {point for part in (POINTS, strikes.SELDOM) for points in part.values() for point in points}
    assert known == faults.POINTS.keys() - set(strikes.TOO_LATE)


@pytest.mark.parametrize("text", [*(text for _, text in words.REQUESTS if text != "What did you do?"), words.HELD])
@pytest.mark.parametrize("currency", [*words.SIGNS])
def test_the_offline_model_understands_whatever_is_said(text: str, currency: str) -> None:
    about = words.About(currency=currency, past=("September 2026", "October 2026"))
    prompt = PROMPT.format(customer=42, currency=currency, today=DAY)
    said = words.filled(text, Random(1), about=about)
    answer = OfflineModel().invoke([SystemMessage(prompt), HumanMessage(said)])
    assert answer.text.startswith("I have no tool ")  # it names those that it would call, were any bound


# -- what people find on pages -----------------------------------------------------------------
def seen(role: str, path: str) -> str:
    """Return a page as somebody with a role sees it."""
    client = Client()
    client.force_login(make_user(role), backend="django.contrib.auth.backends.ModelBackend")
    return client.get(path).content.decode()


def test_a_reviewer_finds_disagreements_and_their_exits(desk: Desk, outbox: Any) -> None:
    desk.put(message := desk.charge(), "dead")
    case = scanned.found_once(outbox, object_=f"message:{message['id']}")
    assert people.DISAGREEMENT.findall(seen("reviewer", "/reconcile/")) == [str(case)]
    exits = {found["kind"] for found in people.EXIT.finditer(seen("reviewer", f"/reconcile/{case}/"))}
    assert {"adopt", "resend", "settle_rejected", "compensate"} <= exits <= set(EXITS)


def test_staff_find_what_they_can_undo(talk: Talk, owner: Any) -> None:
    owner.execute(
        "INSERT INTO public.outbox_send_after (topic, seconds, reason, set_by) VALUES ('payment.charge', 60, 'a test', 1)"
    )
    month = {"customer_id": talk.customer, "billing_period": "2025-11-01", "amount_minor": 48_000, "currency": "EUR"}
    talk.say("Invoice November and charge it")
    assert talk.drive(calls(("CreateInvoice", month), ("QueueCharge", month)), says("Done.")) == "idle"
    [(number, message)] = talk.rows(
        "SELECT c.id, m.id FROM public.agent_conversation c JOIN public.outbox_message m USING (thread)"
    )
    assert people.UNDO.findall(seen("admin", f"/conversations/{number}/")) == [str(message)]


# -- arguments ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--clients", "0"), "--clients is a number from 1 to 64."),
        (("--seconds", "-3"), "--seconds is a number from 1 to 86400."),
        (("--seconds", "nan"), "--seconds is a number from 1 to 86400."),
        (("--parts", "agent,world"), "--parts names world; there are agent, spare, outbox"),
        (("--data", "/nowhere/at/all"), "/nowhere/at/all holds no instance."),
    ],
)
def test_a_wrong_argument_gets_one_sentence(given: tuple[str, ...], sentence: str) -> None:
    done = manage("chaos", *given)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_production_is_left_in_peace() -> None:
    done = manage(
        "chaos", BACKSTOP_ENV="production", DJANGO_SECRET_KEY="x" * 60, ALLOWED_HOSTS="backstop.example",
        DATABASE_URL="postgresql://backstop_web@/backstop", REDIS_URL="redis://127.0.0.1:6379/0",
    )  # fmt: skip
    assert (done.returncode, "nothing is broken on purpose" in done.stderr) == (1, True)


# -- runs --------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """Return an instance as `chaos` makes one for itself; nothing of it is left afterwards."""
    with own(**QUICK) as made:
        yield made
    assert not made.data.parent.exists()
    assert made.process("postgres") is None


def chaos(place: Place, *given: str) -> "tuple[subprocess.CompletedProcess[str], dict[str, Any]]":
    """Run the command on an instance and return what it said."""
    done = manage("chaos", "--data", str(place.data), "--json", *given)
    assert done.stdout, done.stderr
    return done, json.loads(done.stdout)


@pytest.mark.timeout(300)
def test_nothing_is_lost_or_doubled_by_what_kills_workers_and_broker(place: Place) -> None:
    done, found = chaos(place, "--seed", "5", "--clients", "3", "--seconds", "12", "--parts", PARTS)
    assert (done.returncode, found["violations"], found["not_quiet"]) == (0, [], [])
    assert found["killed"] >= 5
    assert found["figures"]["calls applied"] > 0
    assert place.works()


@pytest.mark.timeout(300)
def test_money_that_nobody_asked_for_is_named_and_the_exit_code_is_1(place: Place) -> None:
    with closing(sqlite3.connect(place.data / "stripe" / "stripe.sqlite3")) as log, log:
        log.execute(
            "INSERT INTO movement (at, account, kind, object, charge, payment_intent, customer, amount, currency, metadata)"
            " SELECT at, account, kind, object, charge, payment_intent, customer, amount, currency, metadata FROM movement"
            " WHERE kind = 'charge' ORDER BY seq DESC LIMIT 1"
        )
    done, found = chaos(place, "--clients", "1", "--seconds", "1", "--parts", "beat")
    assert done.returncode == 1
    assert "sandbox.moved_once" in {violation["invariant"] for violation in found["violations"]}
    assert found["kept"] == str(place.data)
