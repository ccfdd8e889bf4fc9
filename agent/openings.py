"""Putting the questions of a thread to people: one escalation for each interrupt that waits, and what would happen."""

from typing import Any, cast

import structlog
from langgraph.types import StateSnapshot
from psycopg import Connection

from agent import events, leases, policies, previews, questions, steps
from agent.leases import LeaseLost
from agent.runs import Run
from agent.state import State, last_step
from escalations import lifecycle
from escalations import previews as desk
from escalations.previews import Asked, Made
from ledger import faults

log = structlog.get_logger()

# About these people may decide call by call; what a budget or the agent itself asks about has none to run.
WITH_CALLS = ("approval", "rollbacks", "infrastructure")
CALL = ("index", "id", "tool", "arguments")
TRIES = 3  # of a preview that finds its data locked: each waits half a second for it
UNAVAILABLE = "The preview could not be made. Nothing was changed; ask for it again."


def open_all(run: Run, snapshot: StateSnapshot) -> str:
    """Open an escalation for each question that has none, and return the last reason. Raises LeaseLost."""
    reason = ""
    faults.reach("question.asked", thread=run.thread)
    for item in snapshot.interrupts:
        reason = item.value["reason"]
        with run.pool.connection() as conn, conn.transaction():
            leases.check(conn, run.lease)
            _open(conn, run, interrupt_id=item.id, question=item.value, state=cast(State, snapshot.values))
    faults.reach("question.opened", thread=run.thread)
    events.publish(run.thread, "escalation")
    return reason


def _open(conn: Connection[Any], run: Run, *, interrupt_id: str, question: questions.Question, state: State) -> None:
    follows, question = _as_decided(conn, run, question=question, state=state)
    calls = [{name: call[name] for name in CALL} for call in question["calls"]]
    lifecycle.open(
        conn,
        kind=question["kind"],
        object=f"thread:{run.thread}",
        payload=question,
        thread=run.thread,
        interrupt_id=interrupt_id,
        subject=run.subject,
        requested_by=state["author"],
        ai_message_id=question["ai_message_id"],
        generation=question["generation"],
        calls=calls if calls and question["kind"] in WITH_CALLS else None,
        follows=follows,
    )


def _as_decided(
    conn: Connection[Any], run: Run, *, question: questions.Question, state: State
) -> tuple[int | None, questions.Question]:
    """Return the escalation whose decision did not come to run, and the question about the calls as people changed them."""
    if question["phase"] != "before_answers" or not state.get("approvals"):
        return None, question
    given = steps.permission(conn, run, state=state)
    if given is None:
        return None, question
    calls = questions.calls_of(last_step(state)) if given.calls is None else given.calls
    return given.escalation, question | {"calls": questions.proposals(calls, tools=run.tools, subject=run.subject)}


# -- previews ----------------------------------------------------------------------------------


def unmade(run: Run) -> list[Asked]:
    """Return the previews that reviewers of this thread's questions wait for."""
    with run.pool.connection() as conn:
        return desk.unmade(conn, thread=run.thread)


def make_preview(run: Run, snapshot: StateSnapshot, *, asked: Asked) -> None:
    """Run a revision for real, roll it back, and keep what it did for reviewers. Raises LeaseLost."""
    made = _made(run, cast(State, snapshot.values), asked)
    faults.reach("preview.made", thread=run.thread)
    with run.pool.connection() as conn, conn.transaction():
        leases.check(conn, run.lease)
        if desk.store(conn, preview=asked.id, made=made):
            events.emit(conn, thread=run.thread, kind="escalation")
    faults.reach("preview.kept", thread=run.thread)
    events.publish(run.thread, "escalation")


def _made(run: Run, state: State, asked: Asked) -> Made:
    """Return the preview; one that cannot be made says so: no thread is stuck for it, and its reviewers can ask again."""
    batch = steps.to_preview(state, run, asked=asked)
    try:
        made = previews.make(run.pool, batch=batch, tools=run.tools)
        for _ in range(TRIES - 1):
            if made.outcome != "unavailable":
                break
            made = previews.make(run.pool, batch=batch, tools=run.tools)
        return made
    except LeaseLost:
        raise
    except Exception as error:
        log.exception("agent.preview.failed", thread=str(run.thread), preview=asked.id, error=type(error).__name__)
        with run.pool.connection() as conn:
            version = policies.version(conn)
    return Made(
        outcome="unavailable",
        policy_version=version,
        verdicts=[],
        allowed=False,
        needs=1,
        failure={"sentence": UNAVAILABLE},
    )
