"""The one sentence that the model and staff read about a failed call: by constraint name, else by class. Never SQL."""

from typing import Any

import psycopg
import structlog
from psycopg import Connection

from agent.blame import Failed
from agent.validation import ValidCall
from ledger import wiring
from ledger.refusals import Refusal

log = structlog.get_logger()

BY_STATE = {
    "23505": "This exists already. Do not create it again; look it up or choose another value.",
    "23503": "Something that the call refers to does not exist.",
    "23514": "A business rule does not allow this change. Check the amounts and the state, then correct the call.",
    "23502": "A required value is missing.",
    "42501": "It does not exist in this conversation.",
    "57014": "The data was busy for too long. Send the same step again.",
    "55P03": "The data was busy for too long. Send the same step again.",
}
BY_CLASS = {
    "22": "A value in the call cannot be used. Check its form and size.",
    "23": "A rule of the data does not allow this change.",
    "P0": "A business rule does not allow this change.",
}
OTHERWISE = "The change was refused."


def sentence(conn: Connection[Any], failed: Failed, *, call: ValidCall) -> str:
    """Return the sentence. `conn` is in a transaction with the subject set, after the rollback: facts are current."""
    if isinstance(failed.cause, Refusal):
        return failed.cause.sentence
    found = wiring.plugged("BACKSTOP_SENTENCES").get(failed.failure.constraint)
    if found is None:
        return _by_state(failed.failure.sqlstate or "")
    return found if isinstance(found, str) else _with_facts(conn, found, failed=failed, call=call)


def _by_state(state: str) -> str:
    return BY_STATE.get(state) or BY_CLASS.get(state[:2]) or OTHERWISE


def _with_facts(conn: Connection[Any], found: Any, *, failed: Failed, call: ValidCall) -> str:
    """Ask the domain for a sentence with current numbers; when that fails the plain one must do."""
    try:
        with conn.transaction():
            return str(found(conn, call.arguments))
    except (psycopg.Error, AttributeError, LookupError, TypeError):
        log.exception("agent.explanation.failed", constraint=failed.failure.constraint, tool=call.tool.name)
        return _by_state(failed.failure.sqlstate or "")
