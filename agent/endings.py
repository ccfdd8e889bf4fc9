"""Why a run ended before the thread's work did, in a sentence for the list of conversations and for whoever is asked later."""

from agent.checkpoints import ClockWentBack
from agent.failures import Kind, Phase, classify

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
    known = {OtherGraph: OTHER_GRAPH, Unreadable: UNREADABLE, ClockWentBack: CLOCKS}
    if (sentence := known.get(type(error))) is not None:
        return sentence
    return DATABASE if classify(phase=Phase.BEGIN, error=error) is Kind.INFRASTRUCTURE else UNEXPECTED
