"""The graph's shape, its words for decisions, its budgets and its start-up checks."""

import ast
import inspect
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from langchain_core.messages import AIMessage

from agent import budgets, checks, graph, nodes, prompt, resumption, state
from agent.budgets import Limits
from agent.state import State
from tests.agent.talks import Talk

BEFORE: Any = {"question": {"kind": "approval", "phase": "before_answers"}, "generation": 0, "approvals": [7]}
AFTER: Any = {"question": {"kind": "rollbacks", "phase": "after_answers"}, "generation": 2, "approvals": []}


def decided(kind: str, **more: Any) -> dict[str, Any]:
    who = {"decided_by": 8, "name": "Reviewer 8"}
    return {"decision": 9, "kind": kind, "text": "Because.", "revision": None} | who | more


def test_it_keeps_its_nodes_and_version() -> None:
    """A renamed node loses the question of every thread that waits at it: raise GRAPH_VERSION with any change here."""
    handlers = {"__error_handler__agent", "__error_handler__tools"}
    assert set(graph.compiled().nodes) == {"__start__", "agent", "tools", "escalate", *handlers}
    assert state.GRAPH_VERSION == 1


def test_it_has_no_edge_that_could_lose_the_rest() -> None:
    builder = graph.compiled().builder
    assert builder.edges == {("__start__", "agent")}
    assert not builder.branches


@pytest.mark.parametrize("node", [nodes.agent, nodes.tools, nodes.escalate, nodes.agent_failed, nodes.tools_failed])
def test_it_names_every_place_that_a_node_goes_to(node: Any) -> None:
    [targets] = get_args(get_type_hints(node)["return"])
    assert set(get_args(targets)) <= {"agent", "tools", "escalate", "__end__"}


def test_it_stores_only_channels_that_exist() -> None:
    """LangGraph drops an unknown key silently."""
    known, source = set(get_type_hints(State)), Path(inspect.getfile(nodes)).read_text()
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.keyword) and call.arg == "update" and isinstance(call.value, ast.Dict):
            assert {key.value for key in call.value.keys if isinstance(key, ast.Constant)} <= known


def test_it_asks_first_in_the_node_that_waits() -> None:
    [function] = ast.parse(inspect.getsource(nodes.escalate)).body
    assert isinstance(function, ast.FunctionDef)
    first = function.body[1]
    assert "interrupt(" in ast.unparse(first)
    assert ast.unparse(function).count("interrupt(") == 1


@pytest.mark.parametrize(
    ("given", "decision", "goto", "update"),
    [
        (BEFORE, decided("approve", revision=0), "tools", {"approvals": [9], "generation": 0, "decision": {}}),
        (BEFORE, decided("approve", revision=2), "tools", {"approvals": [9], "generation": 1, "decision": {}}),
        (BEFORE, decided("take_over", revision=1), "tools", {"approvals": [9], "generation": 1, "decision": {}}),
        (AFTER, decided("approve", revision=1), "tools", {"approvals": [9], "generation": 3, "decision": {}}),
        (AFTER, decided("take_over", revision=1), "tools", {"approvals": [9], "generation": 3, "decision": {}}),
        (BEFORE, decided("reject"), "tools", {"decision": decided("reject")}),
        (BEFORE, decided("withdraw"), "tools", {"decision": decided("withdraw")}),
        (BEFORE, decided("expire"), "tools", {"decision": decided("expire")}),
        (BEFORE, decided("answer"), "tools", {"decision": decided("answer")}),
        (BEFORE, decided("retry"), "tools", {}),
        (AFTER, decided("retry"), "tools", {"generation": 3, "approvals": []}),
        ({"question": {"kind": "infrastructure", "phase": "after_answers"}}, decided("retry"), "agent", {}),
    ],
)
def test_it_goes_on_as_decided(given: Any, decision: Any, goto: str, update: dict[str, Any]) -> None:
    found, node = resumption.after(decision, state=given)
    assert node == goto
    assert found == {"question": {}, "rollbacks": 0, "turn": budgets.new_turn()} | update


@pytest.mark.parametrize(
    ("kind", "goto", "text"),
    [
        ("answer", "agent", "A reviewer answers: Because."),
        ("close", "__end__", "Reviewer 8 closed this. Nothing more was done. Because."),
        ("withdraw", "__end__", "Reviewer 8 withdrew the request. Nothing more was done. Because."),
        ("expire", "__end__", "Nobody decided in time. Nothing more was done."),
    ],
)
def test_it_says_what_was_decided(kind: str, goto: str, text: str) -> None:
    found, node = resumption.after(decided(kind), state=AFTER)
    [message] = found["messages"]
    assert (node, message.text, message.id) == (goto, text, "decision:9")


@pytest.mark.parametrize(
    ("decision", "reason"),
    [
        ({}, None),
        (decided("reject"), ("REJECTED", "Because.")),
        (decided("withdraw"), ("WITHDRAWN", "Reviewer 8 withdrew the request. Because.")),
        (decided("answer"), ("ANSWERED", "A reviewer answers instead of letting this run.")),
        (decided("expire"), ("EXPIRED", "Nobody decided in time.")),
        (decided("close", text=""), ("REJECTED", "Reviewer 8 decided against it.")),
    ],
)
def test_it_gives_the_reason_of_a_rejection(decision: Any, reason: tuple[str, str] | None) -> None:
    assert resumption.rejection({"decision": decision}) == reason


@pytest.mark.parametrize(
    ("used", "word"),
    [
        ({}, None),
        ({"model_calls": 12}, "thought 12 times"),
        ({"model_calls": 11}, None),
        ({"tokens": 200_000}, "200,000 tokens"),
        ({"seconds": 120.0}, "120 seconds"),
        ({"failures": {"a": 3}}, "same failing step 3 times"),
        ({"failures": {"a": 2, "b": 2}}, None),
    ],
)
def test_it_ends_a_turn_that_used_too_much(used: dict[str, Any], word: str | None) -> None:
    found = budgets.exceeded(budgets.new_turn() | used, limits=Limits())
    assert (found is None) if word is None else (word in str(found))


def test_it_counts_without_changing_what_it_was_given() -> None:
    turn = budgets.new_turn()
    after = budgets.after_tools(budgets.after_model(turn, tokens=5, seconds=1.0), seconds=2.0, failure="x")
    assert turn == budgets.new_turn()
    assert after == {"model_calls": 1, "tokens": 5, "seconds": 3.0, "failures": {"x": 1}}


def test_it_names_the_version_of_its_prompt() -> None:
    system = prompt.system()
    assert system.version == "system 2"
    assert not system.text.startswith("version")


def test_it_refuses_leases_that_run_out_under_a_healthy_worker(settings: Any) -> None:
    settings.LOGIN = "agent"
    assert checks.check_times(None) == []
    settings.HEARTBEAT_SECONDS, settings.LEASE_SECONDS = 10, 12
    assert [found.id for found in checks.check_times(None)] == ["agent.E001", "agent.E002"]


def test_it_refuses_to_orphan_waiting_threads(talk: Talk, settings: Any) -> None:
    settings.LOGIN = "agent"
    talk.owner.execute("INSERT INTO public.agent_thread (thread, state, graph_version) VALUES (gen_random_uuid(), 'idle', 0)")
    assert checks.check_waiting_threads(None, databases=["default"]) == []
    talk.owner.execute("INSERT INTO public.agent_thread (thread, state, graph_version) VALUES (gen_random_uuid(), 'waiting', 0)")
    assert [found.id for found in checks.check_waiting_threads(None, databases=["default"])] == ["agent.E003"]


def test_it_does_not_drive_a_thread_of_another_graph(talk: Talk) -> None:
    talk.owner.execute("INSERT INTO public.agent_thread (thread, state, graph_version) VALUES (%s, 'waiting', 0)", (talk.thread,))
    talk.say("Hello")
    assert talk.drive(AIMessage("never")) == "left"
    assert talk.messages() == []
