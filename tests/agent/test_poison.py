"""Poisoned threads: whatever cannot be saved, read or run ends with a person who is told why, and the thread can go on after."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from django.test import Client

from agent import leases, sweep
from agent.tools import Tool, registry
from tests import faults
from tests.agent import stopping
from tests.agent.scripts import calls, says
from tests.agent.talks import Talk

STAFF = "The agent could not go on. Nothing is lost."


def look(talk: Talk) -> dict[str, Any]:
    return calls(("LookUpCustomer", {"customer_id": talk.customer}))


def reason(talk: Talk) -> str:
    """Return what the newest escalation says to the reviewer."""
    query = "SELECT payload->>'reason' FROM public.escalations_escalation WHERE thread = %s ORDER BY id DESC LIMIT 1"
    return str(talk.one(query, talk.thread))


def page(talk: Talk) -> str:
    """Return the conversation's page as the support person reads it."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group

    user = get_user_model().objects.get(pk=talk.support)
    user.groups.add(Group.objects.get(name="support"))
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    pk = talk.one("SELECT id FROM public.agent_conversation WHERE thread = %s", talk.thread)
    return client.get(f"/conversations/{pk}/").content.decode()


def other_talk(talk: Talk) -> Talk:
    """Return another conversation about the same customer."""
    return Talk(pool=talk.pool, owner=talk.owner, web=talk.web, customer=talk.customer)


# -- what a tool gives back ----------------------------------------------------------------------


def circular() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["self"] = found
    return found


# What the database refuses as a value, and what does not even get there.
VALUES: dict[str, Any] = {
    "NaN": {"amount_minor": float("nan")},
    "infinity": {"amount_minor": float("inf")},
    "NUL": {"name": "a\x00b"},
    "surrogate": {"name": "\ud800"},
}
RESULTS: dict[str, Callable[[], Any]] = {
    "object": lambda: {"name": object()},
    "bytes": lambda: {"name": b"a"},
    "circular": circular,
    "deep": lambda: reduce(lambda inner, _: {"a": inner}, range(5000), {}),
}


def tools_that_return(result: Any) -> dict[str, Tool]:
    known = dict(registry())
    return known | {"LookUpCustomer": replace(known["LookUpCustomer"], run=lambda conn, arguments, cause: result)}


@pytest.mark.parametrize("kind", VALUES)
def test_it_tells_the_model_of_a_result_with_a_wrong_value(talk: Talk, kind: str) -> None:
    talk.say("Look")
    assert talk.drive(look(talk), says("I could not look."), tools=tools_that_return(VALUES[kind])) == "idle"
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 0
    assert talk.transcript()[2][1].startswith("FAILED: ")


@pytest.mark.parametrize("kind", RESULTS)
def test_it_asks_a_person_about_a_tool_whose_result_cannot_be_saved(talk: Talk, kind: str) -> None:
    talk.say("Look")
    script = look(talk), says("I could not look.")
    assert talk.drive(*script, tools=tools_that_return(RESULTS[kind]())) == "waiting"
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 0
    assert talk.escalations() == [("infrastructure", "open")]
    assert reason(talk) == "Something unexpected failed. Nothing of this step was saved."
    talk.decide("retry")
    assert talk.drive(says(""), says("Seen.")) == "idle"
    assert talk.transcript()[-1] == ("ai", "Seen.")


@pytest.mark.parametrize("result", [{"count": 10**40}, {"text": "ü" * 300_000}, {}, None, {"1": [None, True, 0.5]}])
def test_it_remembers_any_other_result(talk: Talk, result: Any) -> None:
    talk.say("Look")
    assert talk.drive(look(talk), says("Seen."), tools=tools_that_return(result)) == "idle"
    talk.say("And?")
    assert talk.drive(says(""), says(""), says("Fine.")) == "idle"
    assert talk.transcript()[-1] == ("ai", "Fine.")


# -- what staff write ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["\u202eabc", "\ufffd\ufffe", "𝔘" * 4000, "{{ }} {% %} %s %(a)s", "NaN", "9" * 4000, "\x01\x1b[31m"]
)
def test_it_answers_any_text_that_a_row_can_hold(talk: Talk, text: str) -> None:
    talk.say(text)
    assert talk.drive(lambda messages: says(f"Read {len(messages[-1].text)}.")) == "idle"
    assert talk.transcript() == [("human", text), ("ai", f"Read {len(text)}.")]
    assert "Read" in page(talk)


# -- what raises ---------------------------------------------------------------------------------


def test_it_asks_a_person_when_a_node_raises_and_goes_on_afterwards(talk: Talk) -> None:
    talk.say("Hello")
    talk.owner.execute("REVOKE SELECT ON public.billing_customer FROM backstop_agent")  # the facts for the model
    try:
        assert talk.drive(says("never")) == "waiting"
    finally:
        talk.owner.execute("GRANT SELECT ON public.billing_customer TO backstop_agent")
    assert talk.escalations() == [("infrastructure", "open")]
    assert reason(talk) == "Something unexpected failed. Nothing of this step was saved."
    talk.decide("retry")
    assert talk.drive(says("Hi.")) == "idle"
    assert talk.escalations() == [("infrastructure", "done")]


def test_it_asks_a_person_when_a_decision_cannot_be_taken_in(talk: Talk) -> None:
    """The node that waits raises, which no handler of the graph sees: its question has lost its words."""
    talk.say("What now?")
    asks = calls(("AskHuman", {"customer_id": talk.customer, "question": "May I?"}))
    assert talk.drive(asks, says("Thank you.")) == "waiting"
    talk.decide("answer", "Yes.")
    with changed(talk, "checkpoint_blobs", "blob", "channel = 'question'", ormsgpack.packb({})):
        give_up(talk, asks, says("Thank you."))
        assert reason(talk).startswith(
            "The conversation could not go on after 8 tries. The last one: Something unexpected failed."
        )
    assert talk.drive(asks, says("Thank you.")) == "idle"
    assert talk.transcript()[-1] == ("ai", "Thank you.")
    assert talk.escalations() == [("asked", "done"), ("infrastructure", "done")]


# -- what cannot be read any more ------------------------------------------------------------------


@contextmanager
def changed(talk: Talk, table: str, column: str, where: str, value: Any) -> Iterator[None]:
    """Let a row of a checkpoint be something else inside the block."""
    talk.owner.execute(f"CREATE TABLE public.kept AS SELECT * FROM public.{table}")
    try:
        done = talk.owner.execute(f"UPDATE public.{table} SET {column} = %s WHERE {where}", (value,))
        assert done.rowcount > 0
        yield
        talk.owner.execute(f"DELETE FROM public.{table}")
        talk.owner.execute(f"INSERT INTO public.{table} SELECT * FROM public.kept")
    finally:
        talk.owner.execute("DROP TABLE public.kept")


NOBODY_KNOWS = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("nowhere.at.all", "Thing", ["x"]))))
NEWEST = "checkpoint_id = (SELECT max(checkpoint_id) FROM public.checkpoints)"
BROKEN = {
    "a blob": ("checkpoint_blobs", "blob", "channel = 'messages'", b"\xc1garbage"),
    "a blob's type": ("checkpoint_blobs", "type", "channel = 'messages'", "pickle"),
    "a type that nobody knows": ("checkpoint_blobs", "blob", "channel = 'messages'", NOBODY_KNOWS),
    "a pending write": ("checkpoint_writes", "blob", f"{NEWEST} AND channel = 'messages'", b"\xc1garbage"),
    "the checkpoint": ("checkpoints", "checkpoint", NEWEST, "{}"),
}


def give_up(talk: Talk, *script: Any) -> None:
    """Drive again and again without progress, as the sweeper does, until it gives up."""
    for _ in range(leases.CAP):
        assert talk.drive(*script) == "left"
        talk.owner.execute("UPDATE public.agent_thread SET next_sweep_at = now() WHERE thread = %s", (talk.thread,))
    with talk.pool.connection() as conn:
        assert sweep.sweep(conn) == []
    assert talk.state() == "stuck"


@pytest.mark.parametrize("what", BROKEN)
def test_it_asks_a_person_when_a_thread_cannot_be_read_and_answers_once_it_can(talk: Talk, tmp_path: Path, what: str) -> None:
    talk.say("Look")
    # The tools node's answers are pending: LangGraph sends them beside the next checkpoint, which must not be there yet.
    fault = "checkpoint.put:4:sleep,checkpoint.writes_done:3:kill"
    with stopping.worker(talk.thread, look(talk), says("Seen."), fault=fault, log=tmp_path / "log") as worker:
        worker.ended()
    talk.expire()
    with changed(talk, *BROKEN[what]):
        give_up(talk, look(talk), says("Seen."))
        assert talk.escalations() == [("infrastructure", "open")]
        assert "What the conversation remembers cannot be read." in reason(talk)
        assert STAFF in page(talk)
        another = other_talk(talk)
        another.say("Hello")
        assert another.drive(says("Hi.")) == "idle"

    talk.say("Still there?")
    assert talk.drive(look(talk), says("Seen."), says("Yes.")) == "idle"
    assert [text for role, text in talk.transcript() if role == "ai"] == ["", "Seen.", "Yes."]
    assert talk.escalations() == [("infrastructure", "done")]
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 1


@pytest.mark.parametrize("table", ["checkpoints", "checkpoint_blobs"])
def test_it_asks_a_person_when_a_thread_cannot_be_saved_and_goes_on_once_it_can(talk: Talk, superuser: Any, table: str) -> None:
    talk.say("Look")
    with faults.refusing(superuser, "INSERT", table):
        give_up(talk, look(talk), says("Seen."))
        assert talk.escalations() == [("infrastructure", "open")]
        assert reason(talk).startswith("The conversation could not go on after 8 tries.")
        assert STAFF in page(talk)
    talk.say("Still there?")
    assert talk.drive(look(talk), says("Seen."), says("Yes.")) == "idle"
    assert [role for role, _ in talk.transcript()].count("human") == 2
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 1
    assert talk.escalations() == [("infrastructure", "done")]


def test_it_asks_a_person_when_no_worker_runs_the_thread_s_graph(talk: Talk) -> None:
    talk.say("Look")
    assert talk.drive(look(talk), lambda messages: says("Seen.")) == "idle"
    talk.owner.execute("UPDATE public.agent_thread SET graph_version = 0, state = 'running' WHERE thread = %s", (talk.thread,))
    give_up(talk, says("never"))
    assert "It stopped in a version of the agent that does not run any more." in reason(talk)
    assert STAFF in page(talk)
    talk.owner.execute("UPDATE public.agent_thread SET graph_version = 1 WHERE thread = %s", (talk.thread,))
    talk.say("And now?")
    assert talk.drive(says(""), says(""), says("Here.")) == "idle"
    assert talk.escalations() == [("infrastructure", "done")]


def test_it_asks_a_person_when_each_worker_dies_of_a_thread(talk: Talk) -> None:
    talk.say("Hello")
    for _ in range(leases.CAP):
        with talk.pool.connection() as conn:
            assert leases.acquire(conn, thread=talk.thread)
        talk.expire()
        talk.owner.execute("UPDATE public.agent_thread SET next_sweep_at = now()")
    with talk.pool.connection() as conn:
        assert sweep.sweep(conn) == []
    assert "Its worker ended in the middle of it." in reason(talk)
    assert talk.drive(says("Hi.")) == "idle"
