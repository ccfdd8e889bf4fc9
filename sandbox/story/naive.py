"""The story with LangGraph's stock parts: the same model, the same calls, no net."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any

from django.utils import timezone
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from agent.cards import Card
from agent.feeds import Item, Part
from agent.lines import Line
from ledger import sentences
from ledger.marks import CALLS, Mark
from sandbox.offline.model import OfflineModel
from sandbox.story import scratch, script
from sandbox.story.script import Counts, Telling

PROMPT = "customer_id: {customer}\ncurrency: EUR\ntoday: {today}"
HALF = Mark(state="failed", icon="triangle-alert", word="Half applied")
WHOLE = Mark(state="applied", icon="check", word="Applied")
AGAIN = Mark(state="failed", icon="triangle-alert", word="Applied twice")
TWICE = Mark(state="failed", icon="triangle-alert", word="Applied a second time")


def tell(url: str, *, today: date) -> Telling:
    """Run the story in a scratch schema, which is dropped afterwards; `url` may create schemas."""
    text = script.message(_last_month(today), today=today)
    with scratch.schema(url) as name:
        messages = _run(url, name, text, today=today)
        memos, deductions, refunds = scratch.counts(url, name)
    return Telling(
        message=text,
        at=timezone.now(),
        items=_items(text, messages, at=timezone.now()),
        counts=Counts(memos=memos, deductions=deductions, refunds=refunds),
    )


def _last_month(today: date) -> date:
    return date(today.year, today.month - 1, 1) if today.month > 1 else date(today.year - 1, 12, 1)


def _run(url: str, name: str, text: str, *, today: date) -> list[AnyMessage]:
    """Return the conversation of a stock agent: model, ToolNode, model, until it answers."""
    tools = scratch.tools(url, name)
    model = OfflineModel().bind_tools(tools)
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END])
    graph.add_edge("tools", "agent")
    prompt = PROMPT.format(customer=scratch.CUSTOMER, today=today.isoformat())
    start = {"messages": [SystemMessage(prompt), HumanMessage(text)]}
    found: list[AnyMessage] = graph.compile().invoke(start, {"recursion_limit": 20})["messages"]
    return found


def _items(text: str, messages: Sequence[AnyMessage], *, at: datetime) -> list[Item]:
    """Return the conversation as a page shows it."""
    parts = list(_parts(messages))
    return [
        Item(kind="staff", key="naive-staff", at=at, name="Support", text=text),
        Item(kind="agent", key="naive-agent", at=at, name="A stock agent", about="offline, ToolNode", parts=parts),
    ]


def _parts(messages: Sequence[AnyMessage]) -> Iterator[Part]:
    answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    applied: set[str] = set()
    for message in messages:
        if not isinstance(message, AIMessage):
            continue
        if message.text:
            yield Part(text=str(message.text))
        if message.tool_calls:
            yield Part(card=_card(message, answers, applied))


def _card(message: AIMessage, answers: dict[str, ToolMessage], applied: set[str]) -> Card:
    """Return one step; `applied` remembers the sentences of what was done before."""
    lines = [_line(number, call, answers[str(call["id"])], applied=applied) for number, call in enumerate(message.tool_calls, 1)]
    failed = sum(line.mark is CALLS["failed"] for line in lines)
    again = sum(line.mark is TWICE for line in lines)
    says = f"{len(lines) - failed} of {len(lines)} calls are saved, and stay saved." if failed else ""
    says = says or (
        f"All {len(lines)} calls again, {again} of them for the second time." if again else f"All {len(lines)} calls."
    )
    return Card(mark=HALF if failed else AGAIN if again else WHOLE, says=says, lines=tuple(lines), at=None)


def _line(number: int, call: Any, answer: ToolMessage, *, applied: set[str]) -> Line:
    arguments = call["args"] | {"customer_id": scratch.CUSTOMER}  # readable, whatever was sent
    sentence = sentences.proposed(tool=call["name"], arguments=arguments)
    if answer.status == "error":
        return Line(number=number, sentence=sentence, mark=CALLS["failed"], why=_why(str(answer.text)))
    mark = TWICE if sentence in applied else CALLS["applied"]
    applied.add(sentence)
    return Line(number=number, sentence=sentence, mark=mark)


def _why(text: str) -> str:
    return " ".join((text.partition("with error:")[2].partition("Please fix")[0] or text).split())
