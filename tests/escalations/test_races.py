"""One winner: twenty who decide, sign or press at once, and what the others are told."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from escalations import facts, lifecycle
from tests.escalations.questions import ask, edited, row, show, sign
from tests.escalations.scenes import person

MANY = 20
Connect = Callable[[str], Any]


@pytest.fixture
def reviewers(database: None) -> list[Any]:
    return [person(f"reviewer-{number}", "reviewer") for number in range(MANY)]


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Run them from threads that start together; return what each gave, or the fact that it raised."""
    barrier = Barrier(len(acts))

    def run(act: Callable[[], Any]) -> Any:
        barrier.wait(30)
        try:
            return act()
        except facts.Fact as fact:
            return fact

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def decisions(conn: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = conn.execute(
        "SELECT kind, coalesce(u.username, 'the system') FROM public.escalations_decision d"
        " LEFT JOIN public.auth_user u ON u.id = d.decided_by"
    ).fetchall()
    return found


def losers(found: list[Any]) -> list[Any]:
    return [one for one in found if isinstance(one, facts.Fact)]


def test_twenty_decisions_of_all_kinds_have_one_winner(connect: Connect, agent: Any, web: Any, reviewers: list[Any]) -> None:
    nina = person("nina", "support")
    escalation = ask(agent, kind="approval", requested_by=nina.id)
    shown = show(agent, escalation)

    def act(number: int) -> Callable[[], Any]:
        conn, user = connect("agent" if number % 5 == 4 else "web"), reviewers[number].id
        return [
            lambda: sign(conn, escalation, user, shown).decision,
            lambda: lifecycle.decide(conn, escalation=escalation, kind="reject", text="No.", user=user),
            lambda: lifecycle.decide(conn, escalation=escalation, kind="answer", text="Ask them.", user=user),
            lambda: lifecycle.withdraw(conn, escalation=escalation, user=nina.id),
            lambda: lifecycle.expire(conn, escalation=escalation, text="Nobody decided in time."),
        ][number % 5]

    found = at_once(*(act(number) for number in range(MANY)))
    [winner] = [one for one in found if not isinstance(one, facts.Fact)]
    assert len(losers(found)) == MANY - 1
    assert {(type(fact), fact.kind, fact.name) for fact in losers(found)} == {(facts.AlreadyDecided, winner.kind, winner.name)}
    assert decisions(web) == [(winner.kind, winner.name)]
    assert web.execute("SELECT count(*) FROM public.escalations_signature").fetchone() == (int(winner.kind == "approve"),)
    assert row(web, escalation) == ("expired" if winner.kind == "expire" else "decided")


def test_twenty_signatures_for_a_quorum_of_two_make_one_decision(
    connect: Connect, agent: Any, web: Any, reviewers: list[Any]
) -> None:
    escalation = ask(agent, kind="approval")
    shown = show(agent, escalation, needs=2)
    found = at_once(*(partial(sign, connect("web"), escalation, user.id, shown) for user in reviewers))
    signed = [one for one in found if not isinstance(one, facts.Fact)]
    assert sorted((one.signatures, bool(one.decision)) for one in signed) == [(1, False), (2, True)]
    [(kind, name)] = decisions(web)
    assert {(type(fact), fact.kind, fact.name) for fact in losers(found)} == {(facts.AlreadyDecided, kind, name)}
    assert web.execute("SELECT count(*) FROM public.escalations_signature").fetchone() == (2,)


def test_one_person_who_signs_twenty_times_has_signed_once(connect: Connect, agent: Any, web: Any, reviewers: list[Any]) -> None:
    escalation = ask(agent, kind="approval")
    shown = show(agent, escalation, needs=2)
    found = at_once(*(partial(sign, connect("web"), escalation, reviewers[0].id, shown) for _ in range(MANY)))
    assert {type(fact) for fact in losers(found)} == {facts.SignedAlready}
    assert len(losers(found)) == MANY - 1
    assert decisions(web) == []


@pytest.mark.parametrize("turn", range(5))
def test_what_is_signed_is_never_what_was_edited_meanwhile(
    connect: Connect, agent: Any, web: Any, reviewers: list[Any], turn: int
) -> None:
    escalation = ask(agent, kind="approval")
    shown = show(agent, escalation)
    edit = partial(lifecycle.revise, escalation=escalation, calls=edited(20_000), shown=0)
    editors = [partial(edit, connect("web"), user=user.id) for user in reviewers[:5]]
    signers = [partial(sign, connect("web"), escalation, user.id, shown) for user in reviewers[5:10]]
    found = at_once(*editors, *signers)
    assert len(losers(found)) == 9  # either one signature, or one edit
    newest = web.execute("SELECT max(number) FROM public.escalations_revision").fetchone()
    assert (len(decisions(web)), *newest) in [(1, 0), (0, 1)]
    assert {type(fact) for fact in losers(found)} <= {facts.Outdated, facts.AlreadyDecided}


def test_twenty_presses_of_the_button_have_one_winner(agent: Any, web: Any, reviewers: list[Any]) -> None:
    escalation = ask(agent, kind="approval")
    revision, preview = show(agent, escalation)
    signature = {"kind": "approve", "revision": revision, "preview": preview}
    forms: list[dict[str, Any]] = [signature, {"kind": "reject", "text": "No."}, {"kind": "answer", "text": "Ask them."}]

    def press(number: int) -> Callable[[], tuple[int, str]]:
        client = Client()
        client.force_login(reviewers[number], backend="django.contrib.auth.backends.ModelBackend")

        def post() -> tuple[int, str]:
            try:
                answer = client.post(f"/escalations/{escalation}/decide/", forms[number % 3])
                return answer.status_code, answer.content.decode()
            finally:
                connection.close()

        return post

    found = at_once(*(press(number) for number in range(MANY)))
    assert sorted(status for status, _ in found) == [302] + [409] * (MANY - 1)
    [(_, name)] = decisions(web)
    assert all(name.capitalize() in page for status, page in found if status == 409)


def test_a_request_that_is_sent_again_is_told_who_was_first(agent: Any, web: Any, reviewers: list[Any]) -> None:
    escalation = ask(agent, kind="approval")
    revision, preview = show(agent, escalation)
    client = Client()
    client.force_login(reviewers[0], backend="django.contrib.auth.backends.ModelBackend")
    form = {"kind": "approve", "revision": revision, "preview": preview}
    first, second = (client.post(f"/escalations/{escalation}/decide/", form) for _ in range(2))
    assert (first.status_code, second.status_code) == (302, 409)
    assert "You already approved this" in second.content.decode()
    assert len(decisions(web)) == 1
