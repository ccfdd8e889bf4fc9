"""The five things that a visitor may break: what each does, what a usual agent would make of it, and how it is done."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings

from sandbox.breaking import demonstration, lifting, requests, runs
from sandbox.breaking.demonstration import CannotStrike
from sandbox.breaking.following import Follower, follow
from sandbox.breaking.runs import Run
from sandbox.demo.provider import Provider
from sandbox.supervisor import injections

KILLED_AT = 3  # calls of the batch have written by then
CONFIRM = "/v1/payment_intents/[^/]+/confirm"
DAY_AND_AN_HOUR = 25 * 60 * 60  # seconds: Stripe keeps an idempotency key for 24 hours
STARTS = 60.0  # seconds in which a part is up again
ASK_FIRST = "Nobody has asked for anything here yet: support staff has to begin the conversation."


@dataclass(frozen=True, kw_only=True)
class Act:
    """One button."""

    name: str
    button: str
    icon: str
    does: str
    usual: str
    carry_out: Callable[[Run], None]


def kill_worker(run: Run) -> None:
    """Have the worker killed between two calls of one batch."""
    if not run.thread:
        raise CannotStrike(ASK_FIRST)
    injections.arm(settings.DATA_DIR, part="agent", fault=f"batch.write:{KILLED_AT}:kill:{run.thread}")
    try:
        old = demonstration.kill("agent")
    except CannotStrike:
        injections.disarm(settings.DATA_DIR, part="agent")
        raise
    run.tell(f"Worker {old} is killed, so that the supervisor starts one that dies on cue.", state="queued")
    new = runs.wait(lambda: _successor("agent", old), seconds=STARTS, otherwise="No new worker has come up.")
    run.tell(
        f"Worker {new} takes work. It gets kill -9 as soon as call {KILLED_AT} of {requests.CALLS} has written.", state="held"
    )
    if run.request is None:
        return run.tell("Armed: it strikes in the next batch of this conversation.", state="held")
    run.send()
    gone = f"Worker {{worker}} is dead: {KILLED_AT} of {{calls}} calls had written, and PostgreSQL undid all of them."
    follow(Follower(run, gone=gone))


def _successor(part: str, old: int) -> int | None:
    """Return the process that works in the place of another one."""
    new = demonstration.pid(part)
    return new if new != old and demonstration.works(part) else None


def lose_answer(run: Run) -> None:
    """Have Stripe charge the card and hang up instead of answering."""
    with demonstration.provider() as provider:
        provider.control("POST", "faults", {"when": "after", "mode": "drop", "method": "POST", "path": CONFIRM, "count": 1})
    run.tell("Stripe will take the next charge and hang up before it has answered.", state="held")
    run.send()
    follow(Follower(run))


def jump(run: Run) -> None:
    """Lose an answer, keep Stripe from being asked, and let its clock pass the life of every key."""
    if run.request is None:
        return _jump(run)
    follower = Follower(run)
    with lifting.lifted() as provider:
        provider.control("POST", "webhooks", {"action": "pause"})
        _lose_answer_until_unknown(follower, provider)
        _jump(run)
        provider.control("DELETE", "faults")
        run.tell("Stripe can be asked again.", state="queued")
        follow(follower)


def _lose_answer_until_unknown(follower: Follower, provider: Provider) -> None:
    """Send the request, lose the answer to its charge, and wait until its outcome is unknown. Raise Late."""
    provider.control("POST", "faults", {"when": "before", "mode": "502", "method": "GET", "path": "/v1/.*", "count": None})
    provider.control("POST", "faults", {"when": "after", "mode": "drop", "method": "POST", "path": CONFIRM, "count": 1})
    words = "Stripe will take the charge, hang up before it has answered, and not be there to be asked."
    follower.run.tell(words, state="held")
    follower.run.send()
    follower.until(lambda found: found.unknown, seconds=STARTS, otherwise="The charge did not get to Stripe in time.")


def _jump(run: Run) -> None:
    with demonstration.provider() as provider:
        provider.control("POST", "clock", {"advance": DAY_AND_AN_HOUR})
    run.tell("Stripe’s clock is 25 hours ahead: it has forgotten every idempotency key.", state="held")


def stop_database(run: Run) -> None:
    """Kill PostgreSQL while the agent is at work."""
    follower = Follower(run)
    run.send()
    if run.request:
        follower.until(lambda found: found.state == "running", seconds=STARTS, otherwise="The agent has not taken the request.")
    _killed(run, "postgres", "PostgreSQL", demonstration.database_answers)
    follow(follower)


def stop_broker(run: Run) -> None:
    """Kill the broker, and ask for something while it cannot ring."""
    number = demonstration.kill("valkey")
    run.tell(f"The broker, process {number}, is killed. Whatever was in its queues is gone.", state="undone")
    run.send()
    if run.request and not run.heard:
        run.tell("Nobody could ring for the agent. The request is a row, and waits.", state="queued")
    _back(run, "The broker", demonstration.broker_answers)
    if run.request and not run.heard:
        run.tell("The sweep that comes every 5 s looks for rows that nobody works on.", state="queued")
    follow(Follower(run))


def _killed(run: Run, part: str, name: str, answers: Callable[[], bool]) -> None:
    number = demonstration.kill(part)
    run.tell(f"{name}, process {number}, is killed with kill -9, in the middle of what it was doing.", state="undone")
    _back(run, name, answers)


def _back(run: Run, name: str, answers: Callable[[], bool]) -> None:
    began = time.monotonic()
    runs.wait(answers, seconds=STARTS, otherwise=f"{name} has not come back within {STARTS:.0f} s.")
    run.tell(f"{name} answers again after {time.monotonic() - began:.1f} s.", state="info")


ACTS = (
    Act(
        name="worker",
        button="Kill the worker in the middle of this batch",
        icon="unlink",
        does="kill -9 between two calls of one batch, after three of four have written. Healing waits for the lease: 30 s.",
        usual="has three calls committed by then. Started again, it runs all four: a second memo, a second invoice.",
        carry_out=kill_worker,
    ),
    Act(
        name="answer",
        button="Lose Stripe’s answer",
        icon="wifi-off",
        does="Stripe takes the charge, and the connection breaks before it says so.",
        usual="sees a time-out and tries again: charged twice. Or gives up: charged, and not in the books.",
        carry_out=lose_answer,
    ),
    Act(
        name="clock",
        button="Jump 25 hours",
        icon="timer",
        does="The answer to a charge is lost, and before Stripe can be asked its clock jumps: it forgets every idempotency key.",
        usual="relies on the key. Sent again after a day, the same key charges the card a second time.",
        carry_out=jump,
    ),
    Act(
        name="database",
        button="Stop PostgreSQL",
        icon="database",
        does="kill -9 of the whole database while the agent is at work. The supervisor starts it again.",
        usual="keeps what it had saved so far, loses the rest, and cannot tell which is which.",
        carry_out=stop_database,
    ),
    Act(
        name="broker",
        button="Stop the broker",
        icon="webhook",
        does="kill -9 of the message broker, queues and all, at the moment at which something is asked for.",
        usual="has the request in the queue, and nowhere else: it is never done, and nobody is told.",
        carry_out=stop_broker,
    ),
)
