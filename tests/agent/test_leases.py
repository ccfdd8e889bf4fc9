"""Leases: one worker at a time, a fence that rises, and a worker that lost it can change nothing."""

import threading
from typing import Any
from uuid import UUID, uuid4

import pytest

from agent import leases
from agent.leases import LeaseLost


def expire(owner: Any, thread: UUID) -> None:
    owner.execute("UPDATE public.agent_thread SET leased_until = now() - interval '1 second' WHERE thread = %s", (thread,))


def row(conn: Any, thread: UUID, columns: str) -> Any:
    return conn.execute(f"SELECT {columns} FROM public.agent_thread WHERE thread = %s", (thread,)).fetchone()


def test_it_is_given_to_one_worker(connect: Any) -> None:
    thread = uuid4()
    assert leases.acquire(connect("agent"), thread=thread)
    assert leases.acquire(connect("agent"), thread=thread) is None


def test_it_is_given_to_one_of_many_at_once(connect: Any) -> None:
    thread, barrier, got = uuid4(), threading.Barrier(6), []

    def try_it(conn: Any) -> None:
        barrier.wait(10)
        got.append(leases.acquire(conn, thread=thread))

    workers = [threading.Thread(target=try_it, args=(connect("agent"),)) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(10)
    assert sum(lease is not None for lease in got) == 1


def test_it_raises_the_fence_with_every_acquisition(agent: Any, owner: Any) -> None:
    thread = uuid4()
    first = leases.acquire(agent, thread=thread)
    expire(owner, thread)
    second = leases.acquire(agent, thread=thread)
    assert first and second
    assert second.fence == first.fence + 1


def test_it_holds_the_thread_for_a_transaction_only_with_the_newest_fence(agent: Any, owner: Any) -> None:
    thread = uuid4()
    old = leases.acquire(agent, thread=thread)
    expire(owner, thread)
    new = leases.acquire(agent, thread=thread)
    assert old and new
    leases.check(agent, new)
    with pytest.raises(LeaseLost):
        leases.check(agent, old)


def test_it_waits_for_a_batch_that_still_runs_and_gives_up_soon(
    connect: Any, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, other, thread = connect("agent"), connect("agent"), uuid4()
    lease = leases.acquire(running, thread=thread)
    assert lease
    expire(owner, thread)
    monkeypatch.setattr(leases, "LOCK_WAIT", "50ms")
    with running.transaction():
        leases.check(running, lease)
        assert leases.acquire(other, thread=thread) is None
    assert leases.acquire(other, thread=thread)


def test_it_is_not_given_back_by_a_worker_that_lost_it(agent: Any, owner: Any) -> None:
    thread = uuid4()
    old = leases.acquire(agent, thread=thread)
    expire(owner, thread)
    assert old
    assert leases.acquire(agent, thread=thread)
    with pytest.raises(LeaseLost):
        leases.release(agent, old, state="idle")
    assert row(agent, thread, "state, lease_owner IS NULL") == ("running", False)


def test_it_forgets_failed_drives_when_one_succeeded(agent: Any) -> None:
    thread = uuid4()
    lease = leases.acquire(agent, thread=thread)
    assert lease
    leases.leave(agent, lease, at_once=False)
    assert row(agent, thread, "state, sweeps, next_sweep_at > now()") == ("running", 1, False)
    lease = leases.acquire(agent, thread=thread)
    assert lease
    leases.leave(agent, lease, at_once=False)
    assert row(agent, thread, "sweeps, next_sweep_at > now()") == (2, True)
    lease = leases.acquire(agent, thread=thread)
    assert lease
    leases.release(agent, lease, state="waiting", activity="Refund €320.00 waits for a reviewer")
    assert row(agent, thread, "state, sweeps, activity") == ("waiting", 0, "Refund €320.00 waits for a reviewer")


def test_it_keeps_a_request_to_stop_over_a_crash_but_not_into_the_next_turn(agent: Any, owner: Any, web: Any) -> None:
    thread = uuid4()
    assert leases.acquire(agent, thread=thread)
    web.execute("UPDATE public.agent_thread SET stop_requested_at = now(), stop_requested_by = 7 WHERE thread = %s", (thread,))
    expire(owner, thread)
    lease = leases.acquire(agent, thread=thread)
    assert lease
    assert lease.stop_requested
    leases.release(agent, lease, state="idle")
    web.execute("UPDATE public.agent_thread SET stop_requested_at = now(), stop_requested_by = 7 WHERE thread = %s", (thread,))
    lease = leases.acquire(agent, thread=thread)
    assert lease
    assert not lease.stop_requested
