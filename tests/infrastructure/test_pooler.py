"""A whole conversation with every process behind a transaction-mode pooler, and the same with connections of their own."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests import databases, plugin
from tests.agent.scenes import make_user
from tests.agent.serving import Server, session_of
from tests.agent.test_stream import Listening
from tests.infrastructure import parts, poolers
from tests.infrastructure.desks import ROLES, Desk
from tests.infrastructure.parts import LONG, Parts
from tests.infrastructure.poolers import Pooler
from tests.stack import open_folder
from tests.waiting import until

FIRST = "Create an invoice of €480.00 for October 2025 and charge it to the card."
TEXT = (
    "Issue a credit memo of €0.10 for October 2025 because of the outage."
    " Invoice November 2025 for €12.50, use €0.10 of their credit and charge the rest."
)
TOOLS = ["IssueCreditMemo", "CreateInvoice", "ApplyCredit", "QueueCharge"]
LOGINS = ("web", "agent", "outbox")


@dataclass(frozen=True, kw_only=True)
class House:
    """A web server and two workers in one mode, with a clock that sweeps."""

    parts: Parts
    desk: Desk
    web: Server
    pooler: Pooler | None


@pytest.fixture(scope="module", params=["transaction", "direct"])
def house(request: pytest.FixtureRequest, superuser: Any) -> Iterator[House]:
    """Run everything behind a pooler, or with connections of their own."""
    databases.empty(superuser)
    with open_folder() as folder:
        if request.param == "direct":
            yield from housed(folder, direct, mode="none", pooler=None)
        else:
            with poolers.before(plugin.ADMIN, database=plugin.DATABASE, folder=folder / "pooler") as pooler:
                yield from housed(folder, pooler.address, mode="transaction", pooler=pooler)


def direct(login: str) -> str:
    """Return the database's own address for a login."""
    return databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login=login)


def housed(folder: Any, address: Callable[[str], str], *, mode: str, pooler: Pooler | None) -> Iterator[House]:
    """Start the processes; their pools may open more connections than the pooler has sessions."""
    (folder / "run").mkdir()
    with parts.around(address, folder / "run", BACKSTOP_POOLER=mode) as running:
        web = running.web()
        workers = [running.worker("agent", BACKSTOP_OFFLINE_TOKEN_MS="20"), running.worker("outbox"), running.beat()]
        running.wait(*workers)
        yield House(parts=running, desk=Desk(address=direct, provider=running.provider), web=web, pooler=pooler)


def test_it_brings_a_whole_conversation_to_its_end(house: House) -> None:
    talk = house.desk.begin()
    house.desk.hold("IssueCreditMemo", above=5)
    [(number,)] = house.desk.rows("SELECT id FROM public.agent_conversation WHERE thread = %s", talk.thread)
    with person(house, "support") as support, person(house, "reviewer") as reviewer:
        say(support, number, FIRST)
        until(talk.settled, seconds=LONG, what="a charge that is settled")
        with support.stream("GET", f"/conversations/{number}/stream/?after=0") as response:
            stream = Listening(response)
            say(support, number, TEXT)
            heard(stream, "feed")
            heard(stream, "draft")
            heard(stream, "escalation")
        [(escalation,)] = house.desk.rows("SELECT id FROM public.escalations_escalation WHERE thread = %s", talk.thread)
        assert reviewer.get(f"/escalations/{escalation}/").status_code == 200
        made = "SELECT id FROM public.escalations_preview WHERE outcome = 'clean'"
        [(preview,)] = until(lambda: house.desk.rows(made), seconds=LONG, what="a preview")
        shown = {"revision": "0", "preview": str(preview)}
        assert post(reviewer, f"/escalations/{escalation}/decide/", kind="approve", **shown).status_code == 302
        until(talk.settled, seconds=LONG, what="a conversation that ended")
        page = support.get(f"/conversations/{number}/")
        assert page.status_code == 200
        assert "€12.40" in page.text

    assert talk.roles() == [*ROLES, "human", "ai", *["tool"] * 4, "ai"]
    assert sorted(talk.applied()) == sorted(["CreateInvoice", "QueueCharge", *TOOLS])
    assert talk.outcomes() == ["committed", "held", "committed"]
    assert sorted(house.parts.provider.movements(uid) for uid in talk.messages()) == [[1240], [48_000]]


def test_it_keeps_leases_alive_and_hears_of_failures(house: House) -> None:
    """A run that is longer than many looks of its heartbeat; its failing step, read by the model, is answered once."""
    talk = house.desk.begin()
    talk.say("Create an invoice of €480.00 for November 2025 [misbehave: slow]")
    house.parts.ring("agent.drive", talk.thread)
    until(talk.ended, seconds=LONG, what="an answer")
    [(fence,)] = house.desk.rows("SELECT fence FROM public.agent_thread WHERE thread = %s", talk.thread)
    assert (fence, talk.applied()) == (1, ["CreateInvoice"])


def test_no_process_complained(house: House) -> None:
    """Every warning of a worker would be about its sessions: nothing else was disturbed."""
    logs = [log.read_text() for log in house.parts.folder.glob("*.log")]
    complaints = [line for text in logs for line in text.splitlines() if re.search(r'"level": "(warning|error)"|Traceback', line)]
    assert complaints == []


def test_every_login_went_through_the_pooler(house: House) -> None:
    if house.pooler is None:
        rows = house.desk.rows("SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = current_database()")
        assert {f"backstop_{login}" for login in LOGINS} <= {row[0] for row in rows}
        return
    assert house.pooler.transactions() > 100
    sessions = house.pooler.sessions()
    assert all(1 < sessions[f"backstop_{login}"] <= 3 for login in LOGINS)  # several took turns, and no more than there may be


def test_it_leaves_nothing_that_contradicts_the_invariants(house: House) -> None:
    assert house.desk.broken() == []


# -- people ------------------------------------------------------------------------------------


def person(house: House, role: str) -> httpx.Client:
    """Return a client that is logged in with a role."""
    cookies = {"sessionid": session_of(make_user(role))}
    return httpx.Client(base_url=house.web.address, cookies=cookies, timeout=20, trust_env=False)


def say(client: httpx.Client, number: int, text: str) -> None:
    """Send a message from the conversation's page."""
    assert client.get(f"/conversations/{number}/").status_code == 200
    assert post(client, f"/conversations/{number}/send/", message=str(uuid4()), text=text).status_code in (200, 302)


def post(client: httpx.Client, path: str, **values: str) -> httpx.Response:
    """Send a form as its page does."""
    token = client.cookies.get("csrftoken") or ""
    return client.post(path, data=values, headers={"X-CSRFToken": token, "Referer": str(client.base_url)})


def heard(stream: Listening, event: str) -> None:
    """Read on until an event of this name comes."""
    assert any(stream.next()["event"] == event for _ in range(200)), f"no {event}"
