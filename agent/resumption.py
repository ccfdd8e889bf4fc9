"""What a person's decision does to the thread: a decision goes in, the next node and what it finds come out. Pure."""

from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from agent import budgets
from agent.state import State

Next = Literal["agent", "tools", "__end__"]
Decision = Mapping[str, Any]


def after(decision: Decision, *, state: State) -> tuple[dict[str, Any], Next]:
    """Return the update and where the thread goes on. Every decision starts the counts of a turn anew."""
    fresh: dict[str, Any] = {"question": {}, "rollbacks": 0, "turn": budgets.new_turn()}
    route = _before_answers if state["question"]["phase"] == "before_answers" else _after_answers
    update, goto = route(decision, state)
    return fresh | update, goto


def _before_answers(decision: Decision, state: State) -> tuple[dict[str, Any], Next]:
    """The calls are unanswered: whatever was decided, the tools node gives their answers."""
    if decision["kind"] == "approve":
        return {"approvals": [*state.get("approvals", []), decision["decision"]]}, "tools"
    if decision["kind"] == "retry":
        return {"generation": state.get("generation", 0) + 1, "approvals": []}, "tools"  # an approval is for one generation
    return {"decision": dict(decision)}, "tools"


def _after_answers(decision: Decision, state: State) -> tuple[dict[str, Any], Next]:
    if decision["kind"] == "answer":
        return {"messages": [_answer(decision)]}, "agent"
    if decision["kind"] == "retry":
        return _retry(state)
    return {"messages": [_closed(decision)]}, "__end__"


def _retry(state: State) -> tuple[dict[str, Any], Next]:
    """Run the last step again, when it is what failed; otherwise it was the model that could not answer."""
    if state["question"]["kind"] == "rollbacks":
        return {"generation": state.get("generation", 0) + 1, "approvals": []}, "tools"
    return {}, "agent"


def _answer(decision: Decision) -> BaseMessage:
    return HumanMessage(
        id=f"decision:{decision['decision']}",
        content=f"A reviewer answers: {decision['text']}",
        additional_kwargs={"author": decision["decided_by"], "name": decision["name"]},
    )


def _closed(decision: Decision) -> BaseMessage:
    who = "Nobody decided in time" if decision["kind"] == "expire" else f"{decision['name']} closed this"
    text = f"{who}. Nothing more was done." + (f" {decision['text']}" if decision["text"] else "")
    return AIMessage(id=f"decision:{decision['decision']}", content=text)


def rejection(state: State) -> str | None:
    """Return the reason why the unanswered calls must not run, or None."""
    decision = state.get("decision")
    if not decision:
        return None
    if decision["kind"] == "expire":
        return "Nobody decided in time."
    return str(decision["text"]) or f"{decision['name']} decided against it."
