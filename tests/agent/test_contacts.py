"""The model and the transaction: nothing but PostgreSQL is contacted in one, and none is open while the model answers."""

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent import drafts, events, heartbeats
from agent.tools import Tool, registry
from ledger import connections
from tests import forks, plugin, trap
from tests.agent import stopping
from tests.agent.scripts import calls, says
from tests.agent.takeovers import HELD, step
from tests.agent.talks import Talk
from tests.trap import ContactedInTransaction
from tests.waiting import until


@pytest.fixture
def outside() -> Iterator[tuple[str, int]]:
    """Return the address of somebody else's server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


def tools_that(contact: Callable[[], object]) -> dict[str, Tool]:
    """Return the tools; the look-up contacts somebody first."""
    known = dict(registry())
    look_up = known["LookUpCustomer"]

    def run(conn: Any, arguments: Any, cause: Any) -> dict[str, Any]:
        contact()
        return dict(look_up.run(conn, arguments, cause))

    return known | {"LookUpCustomer": replace(look_up, run=run)}


def connects(address: tuple[str, int]) -> Callable[[], object]:
    return lambda: socket.create_connection(address, timeout=5).close()


def sends(address: tuple[str, int]) -> Callable[[], object]:
    """Return a contact on a connection that was open before."""
    connection = socket.create_connection(address, timeout=5)

    def send() -> None:
        with closing(connection):
            connection.sendall(b"Hello")

    return send


def looks_up(address: tuple[str, int]) -> Callable[[], object]:
    return lambda: socket.getaddrinfo("localhost", address[1])


def rings(address: tuple[str, int]) -> Callable[[], object]:
    """Return a contact of the broker, through a connection of its pool."""
    events.broker().ping()
    return lambda: events.broker().publish("backstop:test", "Hello")


@pytest.mark.parametrize("kind", [connects, sends, looks_up, rings])
def test_it_catches_a_tool_that_contacts_somebody(talk: Talk, outside: tuple[str, int], kind: Any) -> None:
    talk.say("Look")
    tools = tools_that(kind(outside))
    with pytest.raises(ContactedInTransaction, match="socket"):
        talk.drive(calls(("LookUpCustomer", {"customer_id": talk.customer})), says("never"), tools=tools)
    assert "in a transaction" in trap.caught(plugin.FOLDER)
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 0


def test_it_catches_one_in_a_worker_of_its_own(talk: Talk, outside: tuple[str, int], tmp_path: Path) -> None:
    talk.say("Look")
    env = stopping.environment()
    worker = forks.start(contact_in_a_worker, talk.thread, talk.customer, outside, env=env, log=tmp_path / "log")
    worker.join(40)
    assert worker.exitcode == 1
    assert "socket." in trap.caught(plugin.FOLDER)


def contact_in_a_worker(thread: Any, customer: int, address: tuple[str, int]) -> None:
    """Drive the thread once with a tool that contacts somebody."""
    from agent import driver
    from tests.agent import scripts

    look = calls(("LookUpCustomer", {"customer_id": customer}))
    driver.drive(thread, model=scripts.model(look, says("never")), tools=tools_that(connects(address)))


def test_it_catches_a_page_that_contacts_somebody(database: None, outside: tuple[str, int]) -> None:
    with pytest.raises(ContactedInTransaction), connections.writing():
        connects(outside)()
    assert "in a transaction" in trap.caught(plugin.FOLDER)


def test_it_lets_a_tool_be_that_contacts_nobody(talk: Talk) -> None:
    talk.say("Look")
    tools = tools_that(lambda: None)
    assert talk.drive(calls(("LookUpCustomer", {"customer_id": talk.customer})), says("Seen."), tools=tools) == "idle"
    assert trap.caught(plugin.FOLDER) == ""


# -- no transaction while the model answers ------------------------------------------------------

# The web login's belong to the test; the agent's are the pool's and the heartbeat's.
OPEN = """
SELECT pid, state, query FROM pg_stat_activity
WHERE usename = 'backstop_agent' AND datname = current_database() AND xact_start IS NOT NULL
"""


class Onlooker:
    """Looks, with each piece of each answer, whether a transaction is open that would outlast the answer."""

    def __init__(self, talk: Talk) -> None:
        self.talk, self.looks = talk, 0

    def look(self) -> None:
        """Fail when a transaction stays open while the model is in the middle of its answer.

        A checkpoint's own write may still be under way as the answer begins, and a heartbeat takes a moment: both end,
        whatever the model does.
        """
        heartbeat = heartbeats.of(self.talk.pool)
        until(lambda: heartbeat._conn is not None, what="the heartbeat's connection")
        until(lambda: not self.talk.rows(OPEN), seconds=5, what="the end of every transaction")
        self.looks += 1

    def says(self, text: str) -> dict[str, Any]:
        """Return a reply in words that is looked at."""
        return says(text) | {"pause": self.look}

    def calls(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Return a reply that says a word before its calls, and is looked at."""
        return reply | {"text": "Let me do that for you.", "pause": self.look}


def test_it_has_no_transaction_open_while_the_model_answers(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step held and rejected because it would fail, corrected, held, approved, and a question that a person answers."""
    monkeypatch.setattr(heartbeats, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(drafts, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(drafts, "PUBLISH_EVERY", 0.0)
    seen = Onlooker(talk)
    asks = calls(("AskHuman", {"customer_id": talk.customer, "question": "Was that all?"}))
    script = [seen.calls(step(talk, credit=15_000)), seen.calls(step(talk)), seen.calls(asks), seen.says("Applied.")]

    talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    assert talk.drive(*script) == "waiting"
    talk.decide("reject", "There is less credit.")
    assert talk.drive(*script) == "waiting"  # the second step is held as well
    talk.decide("approve")
    assert talk.drive(*script) == "waiting"
    talk.decide("answer", "Yes, thank you.")
    assert talk.drive(*script) == "idle"

    assert talk.escalations() == [("approval", "done"), ("approval", "done"), ("asked", "done")]
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 3
    assert seen.looks >= 4 * 3
