"""Workers that stop in the middle of something, lose their lease meanwhile, and go on: they change nothing any more."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agent import leases, preamble
from agent.batch import Batch, BatchResult, run_batch
from agent.validation import ProposedCall
from tests import faults
from tests.agent import stopping
from tests.agent.batches import move_credit
from tests.agent.scripts import says
from tests.agent.takeovers import HELD, check, outcomes, script, step, taken_over
from tests.agent.talks import Talk
from tests.waiting import until
from tests.zombies import Zombie, everything

Start = Callable[..., Zombie]


@pytest.fixture
def start(talk: Talk, tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a worker of the talk and waits until it stopped."""
    with ExitStack() as stack:

        def begin(*script: Any, **options: Any) -> Zombie:
            log = tmp_path / f"worker-{len(list(tmp_path.iterdir()))}.log"
            zombie = stack.enter_context(stopping.worker(talk.thread, *script, log=log, **options))
            zombie.wait_until_stopped()
            return zombie

        yield begin


SLOW = 5  # seconds that a machine may need beside, which does other things too
ANYWHERE = [
    "run.leased:1", "run.taken:1",
    "checkpoint.put:1", "checkpoint.put_inside:1", "checkpoint.put_done:1",
    "checkpoint.writes:2", "checkpoint.writes_inside:2", "checkpoint.writes_done:2",
    "batch.begin:1", "batch.savepoint:1", "batch.write:2", "batch.release:1", "batch.commit:1", "batch.committed:1",
    "checkpoint.writes:3", "checkpoint.writes_inside:3", "checkpoint.put:4", "checkpoint.put_inside:4", "checkpoint.put_done:5",
    "run.ended:1",
]  # fmt: skip


@pytest.mark.parametrize("fault", ANYWHERE)
def test_it_changes_nothing_wherever_it_stopped(talk: Talk, start: Start, superuser: Any, fault: str) -> None:
    talk.say("Invoice November, use the credit")
    zombie = start(*script(talk), fault=f"{fault}:stop")

    assert taken_over(talk, *script(talk)) == "idle"
    check(talk)
    before = everything(superuser)
    assert zombie.go_on() == 0

    assert everything(superuser) == before
    assert [entry["outcome"] for entry in zombie.logged("tests.worker.ended")] == ["left"]
    assert zombie.logged("agent.run.lost") or zombie.logged("agent.run.failed")


def test_it_changes_nothing_when_it_stopped_while_the_model_answered(talk: Talk, start: Start, superuser: Any) -> None:
    talk.say("Invoice November, use the credit")
    zombie = start(stopping.stops(step(talk)), says("Applied."))

    assert taken_over(talk, *script(talk)) == "idle"
    before = everything(superuser)
    assert zombie.go_on() == 0

    check(talk)
    assert everything(superuser) == before
    assert zombie.logged("agent.run.lost")
    assert outcomes(talk, fence=1) == []


def test_it_is_replaced_when_its_transaction_and_its_lease_have_run_out(
    talk: Talk, start: Start, superuser: Any, settings: Any
) -> None:
    settings.LEASE_SECONDS = 3
    talk.say("Invoice November, use the credit")
    zombie = start(
        *script(talk), fault="batch.write:2:stop", limit="", BACKSTOP_LEASE_SECONDS="3", BACKSTOP_HEARTBEAT_SECONDS="1"
    )
    tries: list[tuple[bool, str]] = []  # was its transaction open after the drive, and what became of the drive

    def one_try() -> bool:
        ended = talk.drive(*script(talk))
        tries.append((is_open(superuser), ended))
        return ended != "busy"

    # Its transaction's own limit ends it: in a pipeline the server counts nobody as idle. The real lease is longer than that.
    until(one_try, seconds=float(preamble.TRANSACTION_TIMEOUT.removesuffix("s")) + SLOW, what="a takeover")
    assert tries[-1] == (False, "idle")
    assert all(ended == "busy" for open_, ended in tries if open_)
    assert tries[0] == (True, "busy")
    before = everything(superuser)
    assert zombie.go_on() == 0

    check(talk)
    assert everything(superuser) == before
    assert outcomes(talk, fence=1) == ["infrastructure", "lost_lease"]
    assert outcomes(talk, fence=2) == ["committed"]
    assert [entry["outcome"] for entry in zombie.logged("agent.attempt.closed")] == ["infrastructure", "lost_lease"]
    assert zombie.logged("agent.run.lost")


def is_open(superuser: Any) -> bool:
    """Say whether a transaction is open that wrote something as the agent login."""
    query = (
        "SELECT FROM pg_stat_activity WHERE usename = 'backstop_agent' AND datname = current_database()"
        " AND backend_xid IS NOT NULL"
    )
    return superuser.execute(query).fetchone() is not None


@pytest.mark.parametrize("fault", ["batch.begin:1", "batch.committed:1"])
def test_it_leaves_what_it_tried_as_evidence(talk: Talk, start: Start, fault: str) -> None:
    talk.say("Invoice November, use the credit")
    zombie = start(*script(talk), fault=f"{fault}:stop")
    assert taken_over(talk, *script(talk)) == "idle"
    assert zombie.go_on() == 0

    check(talk)
    committed = fault == "batch.committed:1"
    assert outcomes(talk, fence=1) == ["committed" if committed else "lost_lease"]
    assert outcomes(talk, fence=2) == ["open" if committed else "committed"]  # what was answered from the ledger has no outcome
    assert zombie.logged("agent.run.lost")


@pytest.mark.parametrize("fault", ["question.asked:1", "question.opened:1", "checkpoint.put:4"])
def test_it_asks_nobody_twice(talk: Talk, start: Start, superuser: Any, fault: str) -> None:
    talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    zombie = start(*script(talk), fault=f"{fault}:stop")
    assert taken_over(talk, *script(talk)) == "waiting"
    before = everything(superuser)
    assert zombie.go_on() == 0

    assert everything(superuser) == before
    assert talk.escalations() == [("approval", "open")]
    assert talk.one("SELECT count(*) FROM public.escalations_revision") == 1


@pytest.mark.parametrize("fault", ["preview.tried:1", "preview.made:1", "preview.kept:1"])
def test_it_makes_no_preview_that_another_worker_has_made(talk: Talk, start: Start, superuser: Any, fault: str) -> None:
    talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    zombie = start(*script(talk), fault=f"{fault}:stop")
    assert taken_over(talk, *script(talk)) == "waiting"
    before = everything(superuser)
    assert zombie.go_on() == 0

    assert everything(superuser) == before
    assert talk.one("SELECT count(*) FROM public.escalations_preview WHERE made_at IS NOT NULL") == 1
    assert zombie.logged("agent.run.lost")


@pytest.mark.parametrize("fault", ["decision.read:1", "decision.resumed:1", "batch.write:1", "checkpoint.put:1"])
def test_it_carries_out_no_decision_that_another_worker_has_carried_out(
    talk: Talk, start: Start, superuser: Any, fault: str
) -> None:
    talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    assert talk.drive(*script(talk)) == "waiting"
    talk.decide("approve")
    zombie = start(*script(talk), fault=f"{fault}:stop")
    assert taken_over(talk, *script(talk)) == "idle"
    before = everything(superuser)
    assert zombie.go_on() == 0

    check(talk)
    assert everything(superuser) == before
    assert talk.escalations() == [("approval", "done")]


def test_it_aborts_nothing_that_its_successor_committed(talk: Talk, start: Start, superuser: Any) -> None:
    """Its batch cannot run any more, which it has to tell as one that lost its lease."""
    talk.say("Invoice November, use the credit")
    start(*script(talk), fault="batch.begin:1:stop")
    assert taken_over(talk, *script(talk)) == "idle"
    before = everything(superuser)
    with pytest.raises(leases.LeaseLost):
        run_again(talk, fence=1)

    check(talk)
    assert everything(superuser) == before
    assert talk.one("SELECT count(*) FROM public.ledger_batch_abort") == 0


@pytest.mark.parametrize("fault", ["batch.begin:1", "batch.commit:1"])
def test_it_commits_nothing_that_its_successor_aborted(talk: Talk, start: Start, superuser: Any, fault: str) -> None:
    talk.say("Invoice November, use the credit")
    zombie = start(*script(talk), fault=f"{fault}:stop")
    talk.expire()  # waits for an open batch
    move_credit(talk.owner, talk.customer, amount_minor=-3_000)
    once_more = step(talk), step(talk, credit=9_000), says("Applied.")
    assert taken_over(talk, *once_more) == "idle"
    before = everything(superuser)
    assert zombie.go_on() == 0

    assert everything(superuser) == before
    assert talk.one("SELECT count(*) FROM public.ledger_batch_abort") == 1
    assert talk.rows("SELECT amount_due_minor FROM public.billing_invoice") == [(39_000,)]


def test_it_records_no_abort_of_a_batch_that_was_applied_even_with_the_lease(talk: Talk) -> None:
    """Without a zombie: whoever runs a batch again after it was applied gets what was answered, also when it fails now."""
    talk.say("Invoice November, use the credit")
    assert talk.drive(*script(talk)) == "idle"
    again = run_again(talk, fence=1)
    assert (again.kind, [answer.status for answer in again.answers]) == ("applied", ["applied", "applied"])
    assert talk.one("SELECT count(*) FROM public.ledger_batch_abort") == 0
    check(talk)


def run_again(talk: Talk, *, fence: int) -> BatchResult:
    """Run the talk's batch once more, refused before it could begin, under a fence."""
    message = talk.messages()[1]
    asked = tuple(
        ProposedCall(index=index, id=call["id"], tool=call["name"], arguments=call["args"], problem="It cannot run.")
        for index, call in enumerate(message.tool_calls)  # type: ignore[attr-defined]
    )
    batch = Batch(
        thread=talk.thread, ai_message_id=str(message.id), subject=talk.customer, on_behalf_of=talk.support, fence=fence,
        model="scripted", prompt_version="1", calls=asked,
    )  # fmt: skip
    return run_batch(talk.pool, batch=batch)


def test_it_keeps_its_lease_in_a_batch_that_is_longer_than_the_heartbeat(
    talk: Talk, connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LOCK_WAIT", "20ms")  # of the others, who ring in vain
    other = connect("owner")
    talk.say("Invoice November, use the credit")
    faults.hold(other, "SELECT FROM public.billing_credit_account FOR UPDATE")
    often = {"BACKSTOP_HEARTBEAT_SECONDS": "0"}  # with each look, every half second
    with stopping.worker(talk.thread, *script(talk), log=tmp_path / "log", limit="", **often) as worker:
        until(lambda: faults.waits(talk.owner), seconds=40, what="a tool that waits for a row, 2 s at most")
        began, until_when = talk.one("SELECT clock_timestamp(), leased_until FROM public.agent_thread")
        rung: list[str] = []
        late = "SELECT clock_timestamp() - %s > interval '0.8 seconds'"
        until(lambda: rung.append(talk.drive(says("never"))) or talk.one(late, began), what="heartbeats within the batch")
        assert set(rung) == {"busy"}
        assert talk.one("SELECT leased_until FROM public.agent_thread") == until_when  # what its own batch locks is skipped
        faults.let_go(other)
        assert worker.ended() == 0
    check(talk)
    assert talk.one("SELECT fence FROM public.agent_thread") == 1
    assert not worker.logged("agent.lease.lost")
