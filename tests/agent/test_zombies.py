"""Workers that stop in the middle of something, lose their lease meanwhile, and go on: they change nothing any more."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agent import preamble
from tests.agent import stopping
from tests.agent.batches import move_credit
from tests.agent.scripts import calls, says
from tests.agent.talks import Talk
from tests.waiting import until
from tests.zombies import Zombie, everything

PERIOD = "2025-11-01"
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


def step(talk: Talk, *, credit: int = 12_000) -> dict[str, Any]:
    of = {"customer_id": talk.customer, "billing_period": PERIOD, "currency": "EUR"}
    return calls(("CreateInvoice", of | {"amount_minor": 48_000}), ("ApplyCredit", of | {"amount_minor": credit}))


def script(talk: Talk) -> tuple[Any, ...]:
    return step(talk), says("Applied.")


def check(talk: Talk) -> None:
    """Compare with a conversation that one worker finished undisturbed."""
    roles = ["human", "ai", "tool", "tool", "ai"]
    assert [role for role, _ in talk.texts()] == roles
    assert [role for role, _ in talk.transcript()] == roles
    assert talk.texts()[-1] == ("ai", "Applied.")
    assert talk.state() == "idle"
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 2
    assert talk.rows("SELECT amount_due_minor FROM public.billing_invoice") == [(36_000,)]
    assert talk.one("SELECT balance_minor FROM public.billing_credit_account") == 0


def taken_over(talk: Talk, *given: Any) -> str:
    """Let the lease run out (which waits for what the stopped worker has locked) and drive the thread to its end."""
    talk.expire()
    return str(until(lambda: (ended := talk.drive(*given)) != "busy" and ended, seconds=20, what="a takeover"))


def outcomes(talk: Talk, *, fence: int) -> list[str]:
    """Return the outcomes of the attempts that were made with a fence; an open one is `open`."""
    query = (
        "SELECT coalesce(o.outcome, 'open') FROM public.ledger_attempt a"
        " LEFT JOIN public.ledger_attempt_outcome o ON o.attempt_id = a.id WHERE a.fence = %s ORDER BY a.began_at"
    )
    return [row[0] for row in talk.rows(query, fence)]


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
