"""The pages of the limits: one admin tightens, two loosen, and nobody else comes near."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.agent.scenes import Scene, make_user

AsRole = Callable[[str | None], Client]
CREATE = ("CreateInvoice", {"billing_period": "2026-11-01", "amount_minor": 48_000, "currency": "EUR"})
INVOICES = {"tool": "CreateInvoice", "currency": "EUR", "value": "479.99", "reason": "New policy"}


@pytest.fixture
def first(scene: Scene, as_role: AsRole) -> Client:
    """Return an admin."""
    return as_role("admin")


@pytest.fixture
def second(scene: Scene, as_role: AsRole) -> Client:
    """Return another admin."""
    return as_role("admin")


def text(page: Any) -> str:
    """Return a page's words."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.content.decode()))


def sets(admin: Client, rule: str = "per_call", **given: str) -> int:
    return admin.post(f"/limits/{rule}/set/", given).status_code


def newest(scene: Scene) -> int:
    return scene.desk.scalar("SELECT max(id) FROM public.agent_policy_request")


def answers(admin: Client, request: int, answer: str) -> int:
    return admin.post(f"/limits/requests/{request}/", {"answer": answer}).status_code


# -- the switch ----------------------------------------------------------------------------------


def test_one_stops_all_writes_and_two_let_them_go_on(scene: Scene, first: Client, second: Client, support: Client) -> None:
    assert first.post("/limits/pause/", {"paused": "1", "reason": ""}).status_code == 422
    assert first.post("/limits/pause/", {"paused": "1", "reason": "Stripe incident"}).status_code == 302
    assert scene.runs(CREATE).kind == "refused"
    assert "paused all writes" in support.get(f"/conversations/{scene.conversation.pk}/").content.decode()
    assert first.post("/limits/pause/", {"paused": "0", "reason": "Over"}).status_code == 302
    assert scene.runs(CREATE).kind == "refused"
    assert answers(first, newest(scene), "confirmed") == 409
    assert scene.runs(CREATE).kind == "refused"
    assert answers(second, newest(scene), "confirmed") == 302
    assert scene.runs(CREATE).kind == "applied"
    said = text(first.get("/limits/"))
    assert "Stripe incident" in said
    assert "Writes go on" in said


def test_one_stops_a_single_tool(scene: Scene, first: Client, second: Client) -> None:
    assert first.post("/limits/pause/", {"paused": "1", "tool": "CreateInvoice", "reason": "Wrong numbers"}).status_code == 302
    assert scene.runs(CREATE).kind == "refused"
    assert scene.runs(("ApplyCredit", {"amount_minor": 1, "currency": "EUR"})).kind == "applied"
    assert "CreateInvoice paused" in text(second.get("/limits/"))
    assert first.post("/limits/pause/", {"paused": "0", "tool": "CreateInvoice", "reason": "Right now"}).status_code == 302
    assert answers(second, newest(scene), "confirmed") == 302
    assert scene.runs(CREATE).kind == "applied"


@pytest.mark.parametrize("tool", ["LookUpCustomer", "AskHuman", "Nothing"])
def test_there_is_nothing_to_stop_about_what_changes_nothing(scene: Scene, first: Client, tool: str) -> None:
    assert first.post("/limits/pause/", {"paused": "1", "tool": tool, "reason": "x"}).status_code == 422


def test_it_stops_nothing_twice(first: Client) -> None:
    assert first.post("/limits/pause/", {"paused": "1", "reason": "Once"}).status_code == 302
    again = first.post("/limits/pause/", {"paused": "1", "reason": "Twice"})
    assert again.status_code == 409
    assert "That is what counts already." in text(again)


# -- numbers -------------------------------------------------------------------------------------


def test_one_sets_a_stricter_limit_at_once(scene: Scene, first: Client) -> None:
    assert sets(first, **INVOICES) == 302
    assert scene.runs(CREATE).kind == "held"
    said = text(first.get("/limits/per_call/"))
    assert "Amount of one call · CreateInvoice · EUR: €479.99" in said
    assert "47,999" not in said


def test_a_looser_limit_waits_for_another_admin(scene: Scene, first: Client, second: Client) -> None:
    assert sets(first, **INVOICES) == 302
    assert sets(first, **INVOICES | {"value": "480"}) == 302
    assert scene.runs(CREATE).kind == "held"
    own, other = (text(admin.get("/limits/per_call/")) for admin in (first, second))
    assert "You asked for it, so another admin has to confirm it." in own
    assert "You asked" not in other
    assert "Now: €479.99" in other
    assert answers(second, newest(scene), "confirmed") == 302
    assert scene.runs(CREATE).kind == "applied"
    assert re.search(r"admin\d+, confirmed by admin\d+", text(first.get("/limits/per_call/")))


def test_the_confirm_button_of_who_asked_does_nothing(scene: Scene, first: Client, second: Client) -> None:
    sets(first, **INVOICES | {"value": "", "off": "on"})
    assert re.search(r"<button[^>]* disabled[^>]*>.*Confirm", first.get("/limits/").content.decode())
    assert not re.search(r"<button[^>]* disabled", second.get("/limits/").content.decode())


ENDINGS = [("first", "withdrawn", 302), ("first", "refused", 409), ("first", "confirmed", 409)]
ENDINGS += [("second", "refused", 302), ("second", "withdrawn", 409), ("second", "confirmed", 302), ("second", "maybe", 422)]


@pytest.mark.parametrize(("who", "answer", "status"), ENDINGS)
def test_who_may_say_what(scene: Scene, first: Client, second: Client, who: str, answer: str, status: int) -> None:
    sets(first, **INVOICES | {"value": "5000.01"})
    assert answers({"first": first, "second": second}[who], newest(scene), answer) == status
    assert scene.desk.count("agent_policy") == (1 if (answer, status) == ("confirmed", 302) else 0)
    if status == 302:
        late = second.post(f"/limits/requests/{newest(scene)}/", {"answer": "confirmed"})
        assert late.status_code == 409
        assert "This request has ended already." in text(late)


def test_one_change_of_a_number_waits_at_a_time(first: Client, second: Client) -> None:
    assert sets(first, **INVOICES | {"value": "6000"}) == 302
    assert sets(second, **INVOICES | {"value": "7000"}) == 409
    assert sets(second, **INVOICES | {"value": "100"}) == 302


def test_there_is_no_such_request(first: Client) -> None:
    assert answers(first, 4711, "confirmed") == 404


def test_every_currency_is_set_in_minor_units_and_said_as_money(first: Client) -> None:
    assert sets(first, **INVOICES | {"currency": "", "value": "40000"}) == 302
    said = text(first.get("/limits/per_call/"))
    assert "40,000 minor units" in said
    assert "€400.00" in said


OTHERS = [
    ("second_reviewer", {"tool": "QueueRefund", "currency": "EUR", "value": "1,000"}, "above · QueueRefund · EUR: €1,000.00"),
    ("customer_day", {"currency": "EUR", "value": "2,000.50"}, "Per customer and day · EUR: €2,000.50"),
    ("staff_day", {"currency": "", "value": "90000"}, "Per staff member and day: 90,000 minor units of any currency"),
    ("conversation", {"currency": "EUR", "value": "€0"}, "Per conversation · EUR: €0.00"),
    ("same_effect", {"tool": "ApplyCredit", "value": "1"}, "The same again · ApplyCredit: 1 hour"),
    ("first_use", {"tool": "VoidInvoice", "value": "3"}, "First uses · VoidInvoice: 3 uses"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "given", "words"), OTHERS)
def test_each_rule_has_a_page(scene: Scene, first: Client, rule: str, given: dict[str, str], words: str) -> None:
    assert sets(first, rule, **given, reason="Because") == 302
    assert words in text(first.get(f"/limits/{rule}/"))
    assert words in text(first.get("/limits/"))


WRONG = [
    ({"value": "-1"}, "It is between €0.00 and €10,000.00."),
    ({"value": "1.555"}, "is not an amount in EUR"),
    ({"value": "480,00"}, "is not an amount in EUR"),
    ({"value": "NaN"}, "is not an amount in EUR"),
    ({"value": "1e3"}, "is not an amount in EUR"),
    ({"value": "10000.01"}, "It is between €0.00 and €10,000.00."),
    ({"value": "250.00", "currency": ""}, "write minor units as a whole number"),
    ({"value": "-5", "currency": ""}, "write minor units as a whole number"),
    ({"value": "9" * 16, "currency": ""}, "write minor units as a whole number"),
    ({"value": "1000001", "currency": ""}, "It is between 0 and 1,000,000 minor units."),
    ({"value": ""}, "Write a number, or tick “Off”: one of the two."),
    ({"off": "on"}, "Write a number, or tick “Off”: one of the two."),
    ({"tool": "Nothing"}, "This tool has no such limit."),
    ({"tool": "AskHuman"}, "This tool has no such limit."),
    ({"tool": "VoidInvoice"}, "This tool has no such limit."),
    ({"tool": ""}, "This field is required."),
    ({"currency": "CHF"}, "No customer has this currency."),
    ({"reason": ""}, "Say why: it is kept with the limit."),
    ({"reason": "x" * 301}, "at most 300 characters"),
    ({"value": "1" * 31}, "at most 30 characters"),
]


@pytest.mark.parametrize(("wrong", "says"), WRONG, ids=str)
def test_it_sets_nothing_that_makes_no_sense(scene: Scene, first: Client, wrong: dict[str, str], says: str) -> None:
    page = first.post("/limits/per_call/set/", INVOICES | wrong)
    assert page.status_code == 422
    assert says in text(page).replace("&#x27;", "'")
    assert (scene.desk.count("agent_policy"), scene.desk.count("agent_policy_request")) == (0, 0)


@pytest.mark.parametrize("value", ["0", "721", "1.5", "x", "-1"])
def test_hours_are_whole_and_at_most_thirty_days(scene: Scene, first: Client, value: str) -> None:
    assert sets(first, "same_effect", tool="QueueRefund", value=value, reason="Because") == 422
    assert scene.desk.count("agent_policy") == 0


@pytest.mark.parametrize("rule", ["nothing", "kill_switch", "currency", "rejected_before"])
def test_there_are_no_numbers_for_other_rules(first: Client, rule: str) -> None:
    assert first.get(f"/limits/{rule}/").status_code == 404
    assert sets(first, rule, **INVOICES) == 404


# -- who ---------------------------------------------------------------------------------------------

PAGES = ["/limits/", "/limits/per_call/", "/limits/per_call/?try=1&tool=CreateInvoice&currency=EUR&value=1"]
POSTS = ["/limits/pause/", "/limits/per_call/set/", "/limits/requests/1/"]


@pytest.mark.parametrize("role", ["support", "reviewer", None])
def test_only_admins_come_near(scene: Scene, as_role: AsRole, role: str | None) -> None:
    person = as_role(role)
    assert [person.get(page).status_code for page in PAGES] == [403] * 3
    given = INVOICES | {"paused": "1", "answer": "confirmed"}
    assert [person.post(page, given).status_code for page in POSTS] == [403] * 3
    assert (scene.desk.count("agent_policy"), scene.desk.count("agent_policy_request")) == (0, 0)


def test_what_is_typed_is_shown_as_typed(first: Client, second: Client) -> None:
    sets(first, **INVOICES | {"value": "6000", "reason": "<script>alert(1)</script>"})
    for page in ("/limits/", "/limits/per_call/"):
        assert "<script>alert(1)" not in second.get(page).content.decode()


def test_asking_puts_no_token_into_the_address(first: Client) -> None:
    page = first.get("/limits/per_call/").content.decode()
    form = page[page.index('id="change"') : page.index("What would it have held?")]
    assert "csrfmiddlewaretoken" not in form


def test_it_asks_the_database_the_same_number_of_times_however_much_was_set(
    scene: Scene, first: Client, django_assert_max_num_queries: Any
) -> None:
    for amount in range(20):
        sets(first, **INVOICES | {"value": str(400 - amount)})
    make_user("admin")
    with django_assert_max_num_queries(20):
        first.get("/limits/")
    with django_assert_max_num_queries(20):
        first.get("/limits/per_call/")
