"""The newest step of a thread as a batch: to be run, with what people allowed of it, or to be shown to them first."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage
from psycopg import Connection

from agent import approvals, questions
from agent.answers import No
from agent.approvals import Permission
from agent.batch import Batch
from agent.runs import Run
from agent.state import State, last_step
from escalations.previews import Asked


def to_run(state: State, run: Run, *, step: AIMessage, rejection: tuple[No, str] | None) -> Batch:
    """Return the step as it is to run now; with a `rejection` it is answered and does not run."""
    permitted = None
    if state.get("approvals"):
        with run.pool.connection() as conn:
            permitted = permission(conn, run, state=state)
    no = {"rejected_as": rejection[0], "rejection": rejection[1]} if rejection else {}
    return _batch(state, run, step, generation=generation(state), permission=permitted, **no)


def to_preview(state: State, run: Run, *, asked: Asked) -> Batch:
    """Return what a revision makes of the step. Its generation is one that no answer was given for."""
    step = last_step(state)
    held = asked.number == 0 and asked.kind == "approval"
    number = asked.generation if held else asked.generation + 1
    return _batch(state, run, step, generation=number, calls=approvals.calls_of(asked.calls))


def permission(conn: Connection[Any], run: Run, *, state: State) -> Permission | None:
    """Return what people allowed of the newest step, read from their decisions' own rows."""
    step = last_step(state)
    return approvals.permission(
        conn,
        decisions=state.get("approvals", []),
        thread=run.thread,
        ai_message_id=str(step.id),
        generation=generation(state),
        proposed=questions.calls_of(step),
    )


def generation(state: State) -> int:
    """Return the newest step's generation; only a person's decision raises it."""
    return state.get("generation", 0)


def _batch(state: State, run: Run, step: AIMessage, **details: Any) -> Batch:
    made_by: Mapping[str, Any] = step.response_metadata
    values: dict[str, Any] = {
        "thread": run.thread,
        "ai_message_id": str(step.id),
        "subject": run.subject,
        "on_behalf_of": state["author"],
        "fence": run.lease.fence,
        "model": made_by.get("model_name", ""),
        "prompt_version": made_by.get("prompt_version", ""),
        "calls": questions.calls_of(step),
    }
    return Batch(**(values | details))
