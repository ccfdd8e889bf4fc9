"""The list: what is in it, in which order, and what it costs."""

import html
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from escalations import lifecycle, presence
from tests.escalations.questions import ask, show, sign
from tests.escalations.scenes import Scene, person

Browse = Callable[[Any], Client]
TITLE = re.compile(r'<a class="trunc" id="a-(\d+)" href="/escalations/\d+/')


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
    lifecycle.decide(web, escalation=many["approval"], kind="reject", text="No.", user=reviewer.id)
    lifecycle.decide(web, escalation=many["payment"], kind="close", text="", user=reviewer.id)
    client = browse(reviewer)
    expected = {
        "": {"asked", "budget", "rollbacks"},
        "?view=mine": {"asked"},
        "?view=unclaimed": {"rollbacks"},
        "?view=waiting": {"approval"},
        "?view=done": {"payment"},
        "?view=expired": set(),
        "?view=snoozed": set(),
        "?view=second": set(),
        "?kind=asked": {"asked"},
        "?q=dynamics": {"rollbacks"},
        "?q=which+contract": {"asked"},
        "?q=contr+which%3F": {"asked"},  # each word begins one
        "?q=ontract": set(),
        "?q=%E2%82%AC50.00": {"rollbacks"},
        "?q=partner's+%5C+!": set(),
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


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("view=nonsense", "There is no view “nonsense”."),
        ("kind=nonsense", "There is no kind “nonsense”."),
        ("age=7", "“7” is not among the ages to choose from."),
        ("amount_from=much&currency=EUR", "'much' is not an amount in EUR; write it like €1,234.56."),
        ("amount_from=-1&currency=EUR", "“-1” is out of range for an amount."),
        ("amount_from=NaN&currency=EUR", "'NaN' is not an amount in EUR; write it like €1,234.56."),
        ("amount_from=1.005&currency=EUR", "'1.005' is not an amount in EUR; write it like €1,234.56."),
        ("amount_from=1.5&currency=JPY", "'1.5' is not an amount in JPY; write it like ¥123,456."),
        ("amount_to=5", "Name the currency of the amount, such as EUR."),
        ("amount_from=9&amount_to=5&currency=eur", "The second amount is smaller than the first."),
        ("currency=E1", "“E1” is no currency: write its three letters, such as EUR."),
    ],
)
def test_a_filter_that_makes_no_sense_is_told_in_one_sentence(
    many: dict[str, int], browse: Browse, reviewer: Any, query: str, sentence: str
) -> None:
    client = browse(reviewer)
    assert listed(client, f"?{query}") == []
    page = html.unescape(client.get(f"/escalations/?{query}").content.decode())
    assert page.count(sentence) == 1
    assert "A filter makes no sense" in page


def test_it_is_narrowed_by_customer_amount_and_age(many: dict[str, int], owner: Any, browse: Browse, reviewer: Any) -> None:
    age(owner, many["asked"], 61)
    client = browse(reviewer)
    expected = {
        "?customer=cycles": {"approval"},
        "?amount_from=120.00&currency=eur": {"approval", "rollbacks"},
        "?amount_from=120.01&currency=EUR": {"approval"},
        "?amount_to=120&currency=EUR": {"payment", "rollbacks"},
        "?amount_from=1,000&amount_to=4,000.00&currency=EUR": {"approval"},
        "?currency=USD": set(),
        "?age=60": {"asked"},
        "?age=240": set(),
        "?age=60&kind=budget": set(),
    }
    for query, kinds in expected.items():
        assert set(listed(client, query)) == {many[kind] for kind in kinds}, query


def test_what_is_snoozed_is_hidden_until_it_is_due_or_woken(
    many: dict[str, int], web: Any, owner: Any, browse: Browse, reviewer: Any
) -> None:
    client = browse(reviewer)
    for kind in ("asked", "budget"):
        until = timezone.now() + timedelta(hours=1)
        lifecycle.snooze(web, escalation=many[kind], user=reviewer.id, until=until)
    for view in ("", "?view=unclaimed"):
        assert set(listed(client, view)) == {many[kind] for kind in ("approval", "rollbacks", "payment")}
    assert set(listed(client, "?view=snoozed")) == {many["asked"], many["budget"]}
    owner.execute(
        "UPDATE public.escalations_escalation SET snoozed_until = now() - interval '1 s' WHERE id = %s", (many["asked"],)
    )
    assert set(listed(client, "?view=snoozed")) == {many["budget"]}
    client.post("/escalations/?view=snoozed", {"one": f"wake:{many['budget']}"})
    assert len(listed(client)) == 5


def test_it_says_who_signed_who_looks_and_what_expires(agent: Any, web: Any, owner: Any, browse: Browse, reviewer: Any) -> None:
    escalation, other = ask(agent, kind="approval"), ask(agent, kind="approval")
    shown = show(agent, escalation, needs=2)
    ravi = person("ravi", "reviewer").id
    sign(web, escalation, ravi, shown)
    client = browse(reviewer)
    assert listed(client, "?view=second") == [escalation]
    assert "Signed 1 of 2" in client.get("/escalations/").content.decode()
    show(agent, escalation, needs=2, digest=b"moved")  # the signature is for something else now
    assert "Signed 1 of 2" not in client.get("/escalations/").content.decode()
    presence.see(web, escalation=other, user=ravi)
    presence.see(web, escalation=escalation, user=reviewer.id)  # oneself is no news
    page = client.get("/escalations/").content.decode()
    assert page.count("looking") == 1
    assert "ravi looking" in page
    assert "Expires at" not in page
    owner.execute("UPDATE public.escalations_escalation SET expires_at = now() + interval '50 min' WHERE id = %s", (other,))
    owner.execute("UPDATE public.escalations_presence SET seen_at = now() - interval '1 min'")
    page = client.get("/escalations/").content.decode()
    assert page.count("Expires at") == 1
    assert "looking" not in page


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


@pytest.mark.parametrize("query", ["", "?q=which", "?kind=asked&age=15&customer=1"])
def test_it_asks_as_often_for_many_lines_as_for_one(
    many: dict[str, int], fill: Callable[[int], None], agent: Any, owner: Any, browse: Browse, reviewer: Any, query: str
) -> None:
    client = browse(reviewer)
    owner.execute("UPDATE public.escalations_escalation SET subject = 1, opened_at = now() - interval '1 h'")
    with CaptureQueriesContext(connection) as few:
        assert listed(client, query)
    fill(60)
    for number in range(10):
        show(agent, ask(agent, kind="approval"), needs=1 + number % 2)
    owner.execute("UPDATE public.escalations_escalation SET subject = 1, opened_at = now() - interval '1 h'")
    owner.execute("UPDATE public.escalations_escalation SET due_at = opened_at WHERE kind = 'approval'")  # on the first page
    with CaptureQueriesContext(connection) as lots:
        assert len(listed(client, query)) == 25
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


def test_the_next_one_is_of_the_same_view_and_filters(
    many: dict[str, int], web: Any, owner: Any, browse: Browse, reviewer: Any
) -> None:
    for minutes, kind in ((50, "budget"), (40, "asked"), (10, "rollbacks"), (5, "payment")):
        age(owner, many[kind], minutes)
    lifecycle.claim(web, escalation=many["rollbacks"], user=person("ravi", "reviewer").id)
    client = browse(reviewer)

    def following(query: str) -> str:
        return str(client.get(f"/escalations/next/?{query}").headers["Location"])

    found = owner.execute("SELECT id FROM public.escalations_escalation ORDER BY due_at, id").fetchall()
    order = [number for (number,) in found]
    free = [number for number in order if number != many["rollbacks"]]  # somebody holds that one
    assert [following(f"after={number}") for number in free] == [f"/escalations/{number}/" for number in [*free[1:], free[0]]]
    lifecycle.decide(web, escalation=free[0], kind="close" if free[0] != many["asked"] else "answer", text="x", user=reviewer.id)
    assert following(f"after={free[0]}") == f"/escalations/{free[1]}/"  # it keeps its place after the decision
    assert following(f"kind=rejected_payment&after={free[1]}") == f"/escalations/{many['payment']}/?kind=rejected_payment"
    assert following(f"kind=rejected_payment&after={many['payment']}") == "/escalations/?kind=rejected_payment"
    assert following("after=nonsense") == f"/escalations/{free[1]}/"


def test_nobody_is_sent_to_their_own_request(scene: Callable[..., Scene], browse: Browse) -> None:
    both = person("both", "support", "reviewer")
    scene(staff=both).asked()
    assert browse(both).get("/escalations/next/").headers["Location"] == "/escalations/"


def test_a_script_gets_the_moving_parts_alone(many: dict[str, int], browse: Browse, reviewer: Any) -> None:
    page = browse(reviewer).get("/escalations/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in page
    for part in ("oldest", "tabs", "list"):
        assert page.count(f'id="{part}"') == 1
    assert "5 escalations in this view" in page


@pytest.mark.parametrize("view", ["open", "mine", "unclaimed", "second", "snoozed", "waiting", "done", "expired"])
def test_an_empty_view_says_so_in_plain_words(browse: Browse, reviewer: Any, view: str) -> None:
    page = browse(reviewer).get(f"/escalations/?view={view}").content.decode()
    assert '<div class="empty">' in page
    assert ("Nothing waits for a person" if view == "open" else "Nothing here") in page


def test_an_admin_looks_on(many: dict[str, int], browse: Browse) -> None:
    client = browse(person("ada", "admin"))
    page = client.get(f"/escalations/?select={many['asked']}").content.decode()
    assert len(TITLE.findall(page)) == 5
    assert "data-select" not in page
    assert 'id="tray"' not in page
    assert client.post("/escalations/", {"one": f"claim:{many['asked']}"}).status_code == 403
    assert client.get("/escalations/tray/").status_code == 403


def test_an_empty_inbox_says_so(browse: Browse, reviewer: Any) -> None:
    client = browse(reviewer)
    assert "Nothing waits for a person" in client.get("/escalations/").content.decode()
    response = client.post("/escalations/next/", follow=True)
    assert "Nothing is unclaimed." in response.content.decode()
