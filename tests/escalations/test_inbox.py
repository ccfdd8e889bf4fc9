"""The list: what is in it, in which order, and what it costs."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from escalations import lifecycle
from tests.escalations.scenes import Scene, person

Browse = Callable[[Any], Client]
TITLE = re.compile(r'<a class="trunc" href="/escalations/(\d+)/">')


def listed(client: Client, query: str = "") -> list[int]:
    """Return the escalations on the page, in its order."""
    response = client.get(f"/escalations/{query}")
    assert response.status_code == 200
    return [int(number) for number in TITLE.findall(response.content.decode())]


def age(owner: Any, escalation: int, minutes: int) -> None:
    owner.execute(
        "UPDATE public.escalations_escalation SET opened_at = opened_at - make_interval(mins => %s),"
        " due_at = due_at - make_interval(mins => %s) WHERE id = %s",
        (minutes, minutes, escalation),
    )


@pytest.fixture
def many(scene: Callable[..., Scene]) -> dict[str, int]:
    """Return one open escalation of each of five kinds."""
    return {
        "approval": scene(name="Sample Cycles BV").approval(),
        "asked": scene(name="Trial & Error LLC").asked("Which contract?"),
        "budget": scene(name="Stand-in Studios").budget(),
        "rollbacks": scene(name="Dummy Dynamics SARL").rollbacks(),
        "payment": scene(name="Fictional Freight Oy").payment(),
    }


def test_it_says_what_is_asked_for_whom_and_how_much(many: dict[str, int], browse: Browse, reviewer: Any) -> None:
    page = browse(reviewer).get("/escalations/").content.decode()
    for words in (
        "Create an invoice of €4,000.00 for September 2026; issue a credit memo of €600.00",
        "€600.00 over €500.00",
        "“Which contract?”",
        "The credit balance is €50.00",
        "Charge €49.00 to the card ending in 4242",
        "Trial &amp; Error LLC · nina",
        "Unclaimed",
        "“Invoice September, use up the credit and charge the rest.”",  # the request is the title, the reason goes second
    ):
        assert words in page
    assert "3 attempts failed" not in page  # the reason's beginning says what the mark says


def test_what_was_asked_is_the_title_and_the_machines_words_go_second(
    scene: Callable[..., Scene], web: Any, browse: Browse, reviewer: Any
) -> None:
    asked = "Refund everything.\nAll of it, " + "and more " * 40
    reason = "3 attempts failed and nothing of them was saved. The last one: Invalid argument amount_minor: Input should be less."
    calls = [{"index": 0, "id": "call-0", "tool": "QueueRefund", "arguments": {"amount_minor": 10**9}, "proposed": ""}]
    first = scene().opens("rollbacks", reason=reason, calls=calls, payload={"staff_message": asked})
    scene().opens("rollbacks", reason=reason, calls=calls)
    lifecycle.decide(web, escalation=first, kind="answer", text="No.", user=reviewer.id)
    client = browse(reviewer)
    for path in ("/escalations/?view=waiting", "/decisions/"):
        page = client.get(path).content.decode()
        assert re.search(r">“Refund everything. All of it, and more [a-z ]+…”<", page), path
        assert not re.search(r">\s*Invalid argument", page), path
    page = client.get("/escalations/").content.decode()
    assert ">Queue refund (arguments not valid)</a>" in page
    assert "Invalid argument amount_minor" in page.partition('<small class="trunc">')[2].partition("</small>")[0]


def test_the_most_urgent_comes_first(many: dict[str, int], owner: Any, browse: Browse, reviewer: Any) -> None:
    age(owner, many["budget"], 61)
    age(owner, many["asked"], 20)
    client = browse(reviewer)
    assert listed(client)[:2] == [many["budget"], many["asked"]]
    page = client.get("/escalations/").content.decode()
    assert page.index("Past target") < page.index("Due within 15 minutes") < page.index("On time")


def test_it_is_narrowed_by_view_kind_and_words(many: dict[str, int], web: Any, browse: Browse, reviewer: Any) -> None:
    lifecycle.claim(web, escalation=many["asked"], user=reviewer.id)
    lifecycle.claim(web, escalation=many["budget"], user=person("ravi", "reviewer").id)
    lifecycle.decide(web, escalation=many["approval"], kind="approve", text="", user=reviewer.id)
    lifecycle.decide(web, escalation=many["payment"], kind="close", text="", user=reviewer.id)
    client = browse(reviewer)
    expected = {
        "": {"asked", "budget", "rollbacks"},
        "?view=mine": {"asked"},
        "?view=unclaimed": {"rollbacks"},
        "?view=waiting": {"approval"},
        "?view=done": {"payment"},
        "?view=expired": set(),
        "?kind=asked": {"asked"},
        "?q=dynamics": {"rollbacks"},
        "?q=which+contract": {"asked"},
        "?q=NINA": {"asked", "budget", "rollbacks"},
        f"?q=e-{many['budget']}": {"budget"},
        "?q=%00": set(),
        "?q=nothing+like+it": set(),
        "?view=nonsense": set(),
    }
    for query, kinds in expected.items():
        assert set(listed(client, query)) == {many[kind] for kind in kinds}, query


def test_a_claim_that_ran_out_holds_nobody(many: dict[str, int], web: Any, owner: Any, browse: Browse, reviewer: Any) -> None:
    lifecycle.claim(web, escalation=many["asked"], user=reviewer.id)
    owner.execute("UPDATE public.escalations_escalation SET claimed_until = now() - interval '1 s' WHERE claimed_by IS NOT NULL")
    client = browse(reviewer)
    assert many["asked"] in listed(client, "?view=unclaimed")
    assert listed(client, "?view=mine") == []


@pytest.fixture
def fill(owner: Any) -> Callable[[int], None]:
    """Return a function that adds open escalations of one conversation's kind, cheaply."""

    def add(count: int) -> None:
        owner.execute(
            "INSERT INTO public.escalations_escalation"
            " (kind, object, payload, thread, subject, requested_by, due_at, state, claimed_by, claimed_until)"
            """ SELECT 'asked', 'x:' || n, '{"reason": "Why.", "question": "Which?"}', gen_random_uuid(),"""
            " (SELECT min(id) FROM public.billing_customer), (SELECT min(id) FROM public.auth_user),"
            " now() + make_interval(mins => mod(n, 7)), 'claimed', (SELECT max(id) FROM public.auth_user), now() + interval '1 h'"
            " FROM generate_series(1, %s) n",
            (count,),
        )

    return add


def test_it_asks_as_often_for_many_lines_as_for_few(
    many: dict[str, int], fill: Callable[[int], None], browse: Browse, reviewer: Any
) -> None:
    client = browse(reviewer)
    with CaptureQueriesContext(connection) as few:
        assert len(listed(client)) == 5
    fill(50)
    with CaptureQueriesContext(connection) as lots:
        assert len(listed(client)) == 25
    assert len(lots) == len(few)


def test_it_is_paged_without_gaps_or_repeats(
    many: dict[str, int], fill: Callable[[int], None], browse: Browse, reviewer: Any
) -> None:
    fill(60)
    client, seen, path, pages = browse(reviewer), [], "/escalations/", []
    while path:
        page = client.get(path).content.decode()
        pages.append([int(number) for number in TITLE.findall(page)])
        seen += pages[-1]
        found = re.search(r'rel="next" href="(\?[^"]+)"', page)
        path = f"/escalations/{found[1].replace('&amp;', '&')}" if found else ""
    assert len(pages) == 3
    assert len(seen) == len(set(seen)) == 65
    back = re.search(r'rel="prev" href="(\?[^"]+)"', page)
    assert back
    assert listed(client, back[1].replace("&amp;", "&")) == pages[1]


def test_the_next_one_is_claimed_and_opened(many: dict[str, int], owner: Any, browse: Browse, reviewer: Any) -> None:
    age(owner, many["budget"], 61)
    response = browse(reviewer).post("/escalations/next/")
    assert response.headers["Location"] == f"/escalations/{many['budget']}/"
    assert owner.execute("SELECT claimed_by FROM public.escalations_escalation WHERE id = %s", (many["budget"],)).fetchone() == (
        reviewer.id,
    )


def test_an_empty_inbox_says_so(browse: Browse, reviewer: Any) -> None:
    client = browse(reviewer)
    assert "Nothing waits for a person" in client.get("/escalations/").content.decode()
    response = client.post("/escalations/next/", follow=True)
    assert "Nothing is unclaimed." in response.content.decode()
