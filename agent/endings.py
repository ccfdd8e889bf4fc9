"""Why a run ended before the thread's work did, in a sentence for the list of conversations and for whoever is asked later."""

import psycopg

from agent.checkpoints import ClockWentBack

DIED = "Its worker ended in the middle of it."
DATABASE = "The database failed."
UNREADABLE = "What the conversation remembers cannot be read."
OTHER_GRAPH = "It stopped in a version of the agent that does not run any more."
CLOCKS = "The clocks of the workers differ."
UNEXPECTED = "Something unexpected failed."


class OtherGraph(Exception):
    """The thread stopped in a version of the graph that this worker does not run; it could lose its question here."""


class Unreadable(Exception):
    """The newest checkpoint, or what is to follow it, cannot be read."""


def why(error: Exception) -> str:
    """Return the sentence for what ended a run."""
    known: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
        (OtherGraph, OTHER_GRAPH),
        (Unreadable, UNREADABLE),
        (ClockWentBack, CLOCKS),
        ((psycopg.OperationalError, psycopg.InterfaceError), DATABASE),
    )
    return next((sentence for kind, sentence in known if isinstance(error, kind)), UNEXPECTED)
