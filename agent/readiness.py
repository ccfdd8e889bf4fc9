"""What an agent worker makes and imports once, before the first message waits for it."""

from agent import graph, llm, prompt
from agent.tools import registry
from ledger import wiring
from outbox import handlers

PLUGS = (
    "BACKSTOP_POLICIES",
    "BACKSTOP_SENTENCES",
    "BACKSTOP_SUBJECTS",
    "BACKSTOP_MONEY",
    "BACKSTOP_MASKS",
    "BACKSTOP_POLICY_FACTS",
)


def prepare() -> None:
    """Make the graph and the model with its tools; nothing is asked of the model. Raises what a wrong setting causes."""
    graph.compiled()
    prompt.system()
    for plug in PLUGS:
        wiring.plugged(plug)
    handlers.every()
    wiring.plugged_all("BACKSTOP_ON_ESCALATION")
    llm.installed().chat.bind_tools(llm.schemas(registry()))
