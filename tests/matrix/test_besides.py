"""The points that no conversation comes by by itself: whoever is killed there, what was asked or is due is done, and once."""

from pathlib import Path
from typing import Any

import pytest

from agent import expiry
from escalations.reconciling import scanning
from ledger import faults
from outbox import breakers, leases, pruning, resumptions
from tests.agent import conftest as agent_fixtures
from tests.agent.scripts import says
from tests.agent.takeovers import HELD, step
from tests.agent.talks import Talk
from tests.escalations import scanned
from tests.matrix import besides
from tests.outbox import conftest as outbox_fixtures
from tests.outbox import test_late as late
from tests.outbox import test_pruning as old
from tests.outbox.asking import ask, carry_out
from tests.outbox.desk import Desk, Row
from tests.waiting import until
from tests.zombies import everything

sandbox, provider, outbox_address = outbox_fixtures.sandbox, outbox_fixtures.provider, outbox_fixtures.outbox_address
desk, talk = outbox_fixtures.desk, agent_fixtures.talk
CONFIRM = "/v1/payment_intents/[^/]+/confirm"
# kind → when the call before it was cut off (nothing: none was made), and what message, invoice and money are in the end.
ENDS: dict[str, tuple[str, tuple[str, str, list[int]]]] = {
    "cancel": ("", ("cancelled", "draft", [])),
    "adopt": ("after", ("succeeded", "paid", [48_000])),
    "resend": ("before", ("succeeded", "paid", [48_000])),
    "settle_rejected": ("before", ("rejected", "charge_failed", [])),
    "refund": ("", ("succeeded", "void", [48_000])),
}
REQUESTS = [
    ("request.asked", "cancel"),
    ("request.taken", "refund"),
    ("request.taken", "settle_rejected"),
    *[("request.carried", kind) for kind in ENDS],
    ("request.done", "refund"),
]
OTHERS = ["send.looked_up", "destination.heard", "destination.resumed", "scan.taken", "scan.settled", "scan.looked",
          "expiry.decided", "prune.taken", "prune.done"]  # fmt: skip


def test_every_point_is_among_them() -> None:
    assert {point for point, _ in REQUESTS} | set(OTHERS) == set(faults.BESIDES)


def waiting(desk: Desk, web: Any, kind: str) -> Row:
    """Return a charge of which a person may ask this."""
    message, (when, _) = desk.charge(), ENDS[kind]
    if kind == "refund":  # it was ended as refused, the invoice voided, and then the money moved
        late.void(desk, late.ended(desk, web, message))
        late.moved(desk, message)
    elif when:
        desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 1 WHERE id = %s", (message["id"],))
        desk.provider.fault(when, "drop", path=CONFIRM)
        desk.deliver_once()
        assert desk.read(message)["state"] == "dead"
    return message


@pytest.mark.parametrize(("point", "kind"), REQUESTS)
def test_what_a_person_asks_is_done_once_though_somebody_is_killed_at(desk: Desk, web: Any, point: str, kind: str) -> None:
    message = waiting(desk, web, kind)
    if point == "request.asked":
        assert besides.dies(besides.ask, message["id"], kind, at=point, provider=desk.provider, login="web")
    else:
        ask(web, message, kind)
        assert besides.dies(besides.carry_out, at=point, provider=desk.provider)
    check_done_once(desk, message, kind, left=0 if point == "request.done" else 1)


@pytest.mark.parametrize("point", ["request.taken", "request.carried"])
def test_it_changes_nothing_when_another_did_meanwhile_what_was_asked(
    desk: Desk, web: Any, superuser: Any, tmp_path: Path, point: str
) -> None:
    message = waiting(desk, web, "refund")
    ask(web, message, "refund")
    with besides.stops(besides.carry_out, at=point, provider=desk.provider, log=tmp_path / "log") as zombie:
        until(lambda: carry_out(desk), seconds=20, what="the end of what the stopped one has begun")
        desk.deliver()
        before = everything(superuser)
        zombie.go_on()

    assert everything(superuser) == before
    check_done_once(desk, message, "refund", left=0)


def check_done_once(desk: Desk, message: Row, kind: str, *, left: int) -> None:
    """Let the next worker do what is left of a request, and see that money moved as it must, and once."""
    assert carry_out(desk) == left
    assert carry_out(desk) == 0
    desk.deliver_all(message)
    desk.deliver()
    assert (desk.read(message)["state"], desk.invoice(message), desk.provider.movements(message["uid"])) == ENDS[kind][1]
    given_back = desk.owner.execute("SELECT uid FROM public.outbox_message WHERE topic = 'payment.refund'").fetchall()
    assert [desk.provider.movements(uid) for (uid,) in given_back] == [[-48_000]] * (kind == "refund")


def test_what_was_lost_is_settled_once_though_whoever_looked_it_up_is_killed(desk: Desk) -> None:
    message = desk.charge()
    desk.provider.fault("after", "drop", path=CONFIRM)
    desk.deliver()
    desk.due(message)
    assert desk.read(message)["state"] == "uncertain"
    assert besides.dies(besides.deliver, at="send.looked_up", provider=desk.provider)
    assert desk.read(message)["state"] == "leased"
    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() - interval '1 s' WHERE state = 'leased'")
    with desk.pool.connection() as conn:
        leases.rescue(conn)
    desk.deliver_all(message)
    assert (desk.read(message)["state"], desk.provider.movements(message["uid"])) == ("succeeded", [48_000])


# -- a destination that turns everybody away ---------------------------------------------------------


def test_a_destination_is_tried_again_though_whoever_parked_it_is_killed(desk: Desk, web: Any) -> None:
    message = desk.charge()
    desk.provider.fault("before", "429", path="/v1/payment_intents")
    assert besides.dies(besides.deliver, at="destination.heard", provider=desk.provider)
    assert desk.one("SELECT parked_until > now() AS parked FROM public.outbox_destination WHERE name = 'stripe'")["parked"]

    desk.owner.execute("UPDATE public.outbox_message SET leased_until = now() - interval '1 s' WHERE state = 'leased'")
    resumptions.ask(web, destination="stripe", reason="it answers again", user=7)
    assert besides.dies(besides.resume, at="destination.resumed", provider=desk.provider)
    with desk.pool.connection() as conn:
        assert leases.rescue(conn) == [(message["id"], "uncertain")]
        assert (breakers.resume(conn), breakers.resume(conn)) == (1, 0)
    desk.deliver_all(message)
    assert (desk.read(message)["state"], desk.provider.movements(message["uid"])) == ("succeeded", [48_000])


# -- scans -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["scan.taken", "scan.settled"])
def test_a_scan_asks_once_though_whoever_took_it_is_killed_at(desk: Desk, outbox: Any, web: Any, point: str) -> None:
    desk.put(message := desk.charge(), "dead")
    assert besides.dies(besides.scan, at=point, provider=desk.provider)
    desk.owner.execute("UPDATE public.escalations_scan SET started_at = now() - interval '11 min'")
    assert scanning.work(outbox, get=None) == 1
    assert [object_ for _, object_, _, _ in scanned.asked(outbox)] == [f"message:{message['id']}"]


def test_what_was_settled_is_looked_at_again_though_whoever_looks_is_killed(desk: Desk, outbox: Any, web: Any) -> None:
    desk.put(message := desk.charge(), "dead")
    case = scanned.found_once(outbox, object_=f"message:{message['id']}")
    scanned.choose(web, case, "settle_rejected")
    assert carry_out(desk) == 1
    assert besides.dies(besides.scan, at="scan.looked", provider=desk.provider)
    assert scanned.state(outbox, case) == "decided"
    desk.owner.execute("UPDATE public.escalations_scan SET started_at = now() - interval '3 min' WHERE finished_at IS NULL")
    assert scanning.work(outbox, get=None) == 1
    assert (scanned.state(outbox, case), scanned.asked(outbox)) == ("done", [])


# -- what is done at its time ------------------------------------------------------------------------


def test_it_goes_on_though_whoever_decided_for_want_of_a_person_is_killed(talk: Talk, provider: Any) -> None:
    talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    assert talk.drive(step(talk), says("Nobody had time.")) == "waiting"
    talk.owner.execute("UPDATE public.escalations_escalation SET expires_at = now() - interval '1 second'")
    assert besides.dies(besides.expire, at="expiry.decided", provider=provider, login="agent")

    with talk.pool.connection() as conn:
        assert expiry.expire(conn) == []
    assert talk.rows("SELECT kind, decided_by FROM public.escalations_decision") == [("expire", None)]
    assert talk.drive(step(talk), says("Nobody had time.")) == "idle"
    assert talk.escalations() == [("approval", "expired")]


@pytest.mark.parametrize(("point", "left"), [("prune.taken", 5), ("prune.done", 3)])
def test_what_is_old_goes_though_whoever_prunes_is_killed_at(desk: Desk, keeper: Any, point: str, left: int) -> None:
    gone, kept = old.made(desk, 5), old.made(desk, days=399)
    for message in (*gone, *kept):
        desk.owner.execute(old.EVIDENCE, (message,))
    assert besides.dies(besides.prune, 2, at=point, provider=desk.provider, login="keeper")
    assert len(old.left(desk)) == left + 1
    assert pruning.messages(keeper, before=old.BEFORE) is None
    assert old.left(desk) == set(kept)
    assert desk.owner.execute("SELECT message_id FROM public.outbox_delivery").fetchall() == [(kept[0],)]
