"""Conversations and ledger that disagree, broken by hand: each is asked about once, and a replay settles it."""

from collections.abc import Callable
from typing import Any

import pytest

from agent import sweep
from escalations.reconciling import scanning
from tests.agent import crashing
from tests.agent.crashing import KILLED
from tests.agent.scripts import says
from tests.agent.takeovers import check, script
from tests.agent.talks import Talk
from tests.escalations import scanned
from tests.escalations.scanned import CLEAN, choose, scan, state

HOUR_AGO = "now() - interval '1 hour'"
LATER = (
    f"UPDATE public.ledger_execution SET committed_at = {HOUR_AGO}",
    f"UPDATE public.ledger_attempt SET opened_at = {HOUR_AGO}",
    f"UPDATE public.agent_thread SET progressed_at = {HOUR_AGO}, next_sweep_at = {HOUR_AGO}",
    "UPDATE public.agent_thread SET leased_until = NULL, lease_owner = NULL",
)


@pytest.fixture
def broken(superuser: Any) -> Callable[..., None]:
    """Return a function that changes rows as only somebody at the database's console can, and lets an hour pass."""

    def change(*queries: str) -> None:
        with superuser.transaction():
            superuser.execute("SET LOCAL session_replication_role = replica")
            for query in (*queries, *LATER):
                superuser.execute(query)

    return change


def replayed(talk: Talk, outbox: Any, case: int) -> None:
    """Decide for a replay, let the agent's worker find it, and have it looked at again."""
    assert choose(talk.web, case, "replay_thread").decision
    assert state(outbox, case) == "decided"
    with talk.pool.connection() as conn:
        assert talk.thread in sweep.sweep(conn)
    assert talk.drive(*script(talk)) == "idle"
    assert state(outbox, case) == "resumed"
    scanning.work(outbox, get=None)
    assert state(outbox, case) == "done"
    assert scan(outbox) == CLEAN
    check(talk)


def test_it_says_nothing_of_what_is_under_way(talk: Talk, outbox: Any, superuser: Any) -> None:
    talk.say("Use the credit")
    talk.drive(*script(talk))
    superuser.execute("DELETE FROM public.agent_transcript_entry WHERE role = 'tool'")
    assert scan(outbox) == CLEAN


def test_what_a_conversation_was_never_told_is_told_again(talk: Talk, outbox: Any, broken: Any) -> None:
    talk.say("Use the credit")
    talk.drive(*script(talk))
    before = talk.transcript()
    broken("DELETE FROM public.agent_transcript_entry WHERE role = 'tool'")
    [message] = talk.rows("SELECT DISTINCT ai_message_id FROM public.ledger_execution")
    case = scanned.found_once(outbox, object_=f"untold:{talk.thread}:{message[0]}")
    replayed(talk, outbox, case)
    assert talk.transcript() == before


def test_what_was_applied_before_a_worker_died_is_told_and_not_done_twice(talk: Talk, outbox: Any, broken: Any) -> None:
    talk.say("Use the credit")
    assert crashing.run(talk.thread, *script(talk), fault="batch.committed:1") == KILLED
    broken("UPDATE public.agent_thread SET state = 'idle'")
    [message] = talk.rows("SELECT DISTINCT ai_message_id FROM public.ledger_execution")
    case = scanned.found_once(outbox, object_=f"untold:{talk.thread}:{message[0]}")
    replayed(talk, outbox, case)


def test_one_that_goes_on_by_itself_is_cleared(talk: Talk, outbox: Any, broken: Any) -> None:
    talk.say("Use the credit")
    assert crashing.run(talk.thread, *script(talk), fault="batch.commit:1") == KILLED
    broken()
    case = scanned.found_once(outbox, object_=f"halted:{talk.thread}")
    assert talk.drive(*script(talk)) == "idle"
    assert scan(outbox) == (0, 0, 1, "")
    assert state(outbox, case) == "done"


def test_a_replay_waits_while_a_person_answers(talk: Talk, outbox: Any, broken: Any) -> None:
    talk.say("Use the credit")
    talk.drive(*script(talk))
    broken("DELETE FROM public.agent_transcript_entry WHERE role = 'tool'")
    scan(outbox)
    [(case, _, _, _)] = scanned.asked(outbox)
    choose(talk.web, case, "replay_thread")
    talk.owner.execute("UPDATE public.agent_thread SET stepped_in_by = 7, stepped_in_at = now()")
    with talk.pool.connection() as conn:
        assert sweep.sweep(conn) == []
    assert talk.drive(says("never")) == "idle"
    assert state(outbox, case) == "decided"
