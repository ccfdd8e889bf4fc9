"""What a thread remembers: messages and JSON-like values, nothing else, so that a strict loader can read them back."""

from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph.message import add_messages

from agent.budgets import Turn

# Raised when a node is renamed or removed: threads that wait in the old graph would lose their question silently.
GRAPH_VERSION = 1


class State(TypedDict, total=False):
    """The channels of the graph."""

    messages: Annotated[list[AnyMessage], add_messages]
    author: int  # the staff member whose message is being worked on
    turn: Turn
    rollbacks: int  # steps answered FAILED since the last one that applied, decision or staff message
    generation: int  # of the newest step; raised by a person's decision only
    approvals: list[int]  # decisions that approved the newest step; what they allow is read from their rows
    decision: dict[str, Any]  # what a person decided about unanswered calls, until the tools node took it
    question: dict[str, Any]  # what `escalate` asks


def last_step(state: State) -> AIMessage:
    """Return the newest message that called tools."""
    return next(m for m in reversed(state["messages"]) if isinstance(m, AIMessage) and m.tool_calls)


def staff_text(state: State) -> str:
    """Return what the staff member wrote last, without the notices that travelled with it."""
    for message in reversed(state["messages"]):
        if isinstance(message, HumanMessage) and str(message.id).startswith("staff:"):
            return str(message.additional_kwargs.get("text", message.text))
    return ""


def call_ids(state: State) -> set[str]:
    """Return the ids of all calls that the thread ever made; some providers refuse a second call of the same id."""
    return {str(call["id"]) for m in state["messages"] if isinstance(m, AIMessage) for call in m.tool_calls}
