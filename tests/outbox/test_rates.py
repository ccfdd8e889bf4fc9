"""How fast messages leave for a destination: set on a page, at once for the next claim; else as the installation says."""

from html import unescape
from typing import Any

import pytest
from django.test import Client
from psycopg import errors

from outbox import leases, rates
from tests.outbox.desk import Desk

GIVEN = {"destination": "stripe", "rate": "1", "burst": "3", "reason": "They asked us to."}
RATE = "Write a whole number of messages a minute up to 60,000; 0 is no limit."
BURST = "Write how many may leave at once, from 1 to 1,000."


def set_rate(desk: Desk, rate: int | None, burst: int = 1, destination: str = "stripe") -> None:
    with desk.owner.transaction():
        rates.set_rate(desk.owner, destination=destination, rate=rate, burst=burst, reason="They asked us to.", user=7)


def held(desk: Desk) -> list[Any]:
    found: list[Any] = desk.owner.execute("SELECT name, rate, burst FROM public.outbox_destination ORDER BY name").fetchall()
    return found


def test_it_holds_each_destination_to_what_the_installation_says(desk: Desk, outbox: Any) -> None:
    rates.keep(outbox, rates={"stripe": (1200, 40)})
    assert held(desk) == [("chat", None, 1), ("email", None, 1), ("stripe", 1200, 40)]

    rates.keep(outbox, rates={"email": (60, 10)})
    assert held(desk) == [("chat", None, 1), ("email", 60, 10), ("stripe", None, 1)]


def test_what_an_admin_sets_stays_when_a_worker_starts(desk: Desk, outbox: Any) -> None:
    said = {"stripe": (1200, 40), "email": (60, 10), "chat": (30, 1)}
    rates.keep(outbox, rates=said)
    set_rate(desk, 100, 5)
    set_rate(desk, None, destination="email")

    rates.keep(outbox, rates=said)

    assert held(desk) == [("chat", 30, 1), ("email", None, 1), ("stripe", 100, 5)]


def test_the_next_claim_keeps_to_it(desk: Desk, outbox: Any) -> None:
    for _ in range(6):
        desk.charge()

    assert len(leases.claim_some(outbox, owner="x", limit=1)) == 1
    set_rate(desk, 1, 3)
    assert len(leases.claim_some(outbox, owner="x", limit=8)) == 3
    set_rate(desk, None)
    assert len(leases.claim_some(outbox, owner="x", limit=8)) == 2


def test_it_leaves_a_parked_destination_parked(desk: Desk) -> None:
    park = "INSERT INTO public.outbox_destination (name, parked_until, parked_because) VALUES ('stripe', now() + '1 h', '401')"
    desk.owner.execute(park)

    set_rate(desk, 60)

    assert desk.one("SELECT parked_until > now() AS parked, rate FROM public.outbox_destination") == {"parked": True, "rate": 60}


def test_it_adds_nothing_when_that_counts_already(desk: Desk) -> None:
    with pytest.raises(rates.NothingChanges):
        set_rate(desk, None)
    set_rate(desk, 60)
    with pytest.raises(rates.NothingChanges):
        set_rate(desk, 60)

    assert desk.one("SELECT count(*) FROM public.outbox_rate")["count"] == 1


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (60_001, 1), (60, 0), (60, 1_001), (None, 2)])
def test_the_database_refuses_what_makes_no_sense(desk: Desk, rate: int | None, burst: int) -> None:
    with pytest.raises(errors.CheckViolation):
        set_rate(desk, rate, burst)


def test_a_row_of_it_is_never_changed_and_a_destination_by_no_page(desk: Desk, web: Any, outbox: Any) -> None:
    set_rate(desk, 60)
    changes = ("UPDATE public.outbox_rate SET rate = 1", "DELETE FROM public.outbox_rate")
    for conn, queries in ((web, (*changes, "UPDATE public.outbox_destination SET rate = 1")), (outbox, changes)):
        for query in queries:
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(query)


def test_an_admin_sets_it_on_the_page(desk: Desk, admin: Client) -> None:
    assert "Default: nothing slows it." in shown(admin.get("/limits/"))
    desk.owner.execute("INSERT INTO public.outbox_destination (name, rate, burst) VALUES ('stripe', 1200, 40)")
    assert "As the installation says: BACKSTOP_RATES." in shown(admin.get("/limits/"))

    page = shown(admin.post("/limits/rate/", GIVEN, follow=True))

    assert "Messages leave for stripe 1 a minute, 3 at once, from now on." in page
    assert "admin1" in page and "“They asked us to.”" in page
    assert held(desk) == [("stripe", 1, 3)]
    assert "1 a minute, 3 at once" in shown(admin.get("/outbox/"))
    assert "That is what counts already." in shown(admin.post("/limits/rate/", GIVEN), status=409)
    assert admin.post("/limits/rate/", GIVEN | {"rate": "0", "burst": ""}).status_code == 302
    assert held(desk) == [("stripe", None, 1)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rate": "60001"}, RATE),
        ({"rate": "-1"}, RATE),
        ({"rate": "1.5"}, RATE),
        ({"rate": "²"}, RATE),
        ({"rate": ""}, "Write how many messages a minute; 0 is no limit."),
        ({"burst": "0"}, BURST),
        ({"burst": "1001"}, BURST),
        ({"burst": "x"}, BURST),
        ({"reason": " "}, "Say why: it is kept with the rate."),
        ({"destination": "fax"}, "There is no such destination."),
    ],
)
def test_it_refuses_a_rate_that_makes_no_sense(desk: Desk, admin: Client, given: dict[str, str], said: str) -> None:
    assert said in shown(admin.post("/limits/rate/", GIVEN | given), status=422)
    assert desk.one("SELECT count(*) FROM public.outbox_rate")["count"] == 0


def shown(response: Any, *, status: int = 200) -> str:
    assert response.status_code == status
    return unescape(response.content.decode())
