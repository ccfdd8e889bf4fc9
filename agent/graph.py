"""The graph: three nodes that route themselves. Wiring only."""

import copy
from functools import cache
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import RetryPolicy

from agent import nodes
from agent.failures import Infrastructure
from agent.llm import Unavailable
from agent.runs import Run
from agent.state import State
from ledger import connections

Graph = CompiledStateGraph[State, Run, State, State]

# Only what passes by itself is tried again, and always with the same request.
DATABASE = RetryPolicy(retry_on=(Infrastructure, *connections.AWAY), max_attempts=3, initial_interval=0.2, jitter=False)
MODEL = RetryPolicy(retry_on=(Unavailable, *connections.AWAY), max_attempts=3, initial_interval=0.5, jitter=True)


def with_saver(saver: BaseCheckpointSaver[Any]) -> Graph:
    """Return the graph with the checkpoints of one run; compiling it anew for each would cost more than a batch."""
    graph = copy.copy(compiled())
    graph.checkpointer = saver
    return graph


@cache
def compiled() -> Graph:
    """Return the graph. Nodes route with `Command` and nothing else: a conditional edge that raises loses the rest silently."""
    graph: StateGraph[State, Run, State, State] = StateGraph(State, context_schema=Run)
    graph.add_node("agent", nodes.agent, retry_policy=MODEL, error_handler=nodes.agent_failed)
    graph.add_node("tools", nodes.tools, retry_policy=DATABASE, error_handler=nodes.tools_failed)
    graph.add_node("escalate", nodes.escalate)
    graph.add_edge(START, "agent")
    return graph.compile()
