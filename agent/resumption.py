"""What a person's decision does to the thread: a decision goes in, the next node and what it finds come out. Pure."""

from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from agent import budgets
from agent.answers import No
from agent.state import State

Next = Literal["agent", "tools", "__end__"]
Decision = Mapping[str, Any]

EXPIRED = "Nobody decided in time."
ANSWERED = "A reviewer answers instead of letting this run."


def after(decision: Decision, *, state: State) -> tuple[dict[str, Any], Next]:
    """Return the update and where the thread goes on. Every decision starts the counts of a turn anew."""
    fresh: dict[str, Any] = {"question": {}, "rollbacks": 0, "turn": budgets.new_turn()}
    if decision["kind"] in ("approve", "take_over"):
        return fresh | _permitted(decision, state), "tools"
    route = _before_answers if state["question"]["phase"] == "before_answers" else _after_answers
    update, goto = route(decision, state)
    return fresh | update, goto


def _permitted(decision: Decision, state: State) -> dict[str, Any]:
    """Name the decision; what it allows is read from its rows. What a person changed runs as the step's next generation."""
    changed = (decision["revision"] or 0) > 0
    return {"approvals": [decision["decision"]], "generation": state.get("generation", 0) + changed, "decision": {}}


def _before_answers(decision: Decision, state: State) -> tuple[dict[str, Any], Next]:
    """The calls are unanswered: whatever was decided, the tools node gives their answers."""
    if decision["kind"] == "retry":
        return {}, "tools"  # nobody was told of a failure, so it is the same generation, with whatever was approved for it
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
    if decision["kind"] == "expire":  # the system's own words would only say so again
        return AIMessage(id=f"decision:{decision['decision']}", content=f"{EXPIRED} Nothing more was done.")
    verb = "withdrew the request" if decision["kind"] == "withdraw" else "closed this"
    text = f"{decision['name']} {verb}. Nothing more was done. {_sentence(decision['text'])}"
    return AIMessage(id=f"decision:{decision['decision']}", content=text.strip())


def answer(state: State) -> list[BaseMessage]:
    """Return what a person answers instead of letting the unanswered calls run; it follows their answers."""
    decision = state.get("decision")
    return [_answer(decision)] if decision and decision["kind"] == "answer" else []


def rejection(state: State) -> tuple[No, str] | None:
    """Return why the unanswered calls must not run, and whose no it is, or None."""
    decision = state.get("decision")
    if not decision:
        return None
    if decision["kind"] == "expire":
        return "EXPIRED", EXPIRED
    if decision["kind"] == "answer":
        return "ANSWERED", ANSWERED
    if decision["kind"] == "withdraw":
        return "WITHDRAWN", f"{decision['name']} withdrew the request. {_sentence(decision['text'])}".strip()
    return "REJECTED", _sentence(decision["text"]) or f"{decision['name']} decided against it."


def _sentence(text: str) -> str:
    """Return a person's words so that more can follow them."""
    return text if not text or text[-1] in ".!?…" else f"{text}."
