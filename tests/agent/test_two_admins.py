"""What the database lets no login set alone, whatever the code says."""

from typing import Any

import psycopg
import pytest
from psycopg import errors

Connection = psycopg.Connection[Any]

ROW = (
    "INSERT INTO public.agent_policy (rule, tool, currency, value, previous, reason, set_by, confirmed_by, request_id)"
    " VALUES (%(rule)s, %(tool)s, %(currency)s, %(value)s, %(previous)s, 'because', 1, %(confirmed_by)s, %(request)s)"
)
GIVEN: dict[str, Any] = {
    "rule": "per_call", "tool": "QueueRefund", "currency": "", "value": 25_000, "previous": 25_000,
    "confirmed_by": None, "request": None,
}  # fmt: skip


def insert(conn: Connection, **changes: Any) -> None:
    conn.execute(ROW, GIVEN | changes)


LOOSER = [
    ({}, {"value": 25_001}),
    ({}, {"value": None}),
    ({}, {"value": 25_001, "previous": 10**6}),  # whatever is said of it, what counted is read
    ({}, {"value": 25_001, "currency": "EUR", "previous": 10**6}),  # a currency's first row follows every currency's
    ({"rule": "kill_switch", "tool": "", "value": 1, "previous": 0}, {"value": 0}),
    ({"rule": "same_effect", "value": 24, "previous": 24}, {"value": 23}),
    ({"rule": "same_effect", "value": 24, "previous": 24}, {"value": None}),
    ({"rule": "first_use", "value": 3, "previous": 0}, {"value": 2}),
    ({"rule": "customer_day", "tool": "", "value": 5, "previous": None}, {"value": 6}),
    ({"rule": "second_reviewer", "value": 5}, {"value": 6}),
]


@pytest.mark.parametrize("login", ["web", "owner"])
@pytest.mark.parametrize(("first", "then"), LOOSER, ids=str)
def test_nobody_loosens_alone(connect: Any, login: str, first: dict[str, Any], then: dict[str, Any]) -> None:
    conn = connect(login)
    insert(conn, **first)
    for changes in ({}, {"confirmed_by": 1}, {"confirmed_by": 2}):
        with pytest.raises((errors.CheckViolation, errors.InsufficientPrivilege)):
            insert(conn, **first | then | changes)


STRICTER = [
    ({}, {"value": 24_999}),
    ({}, {"value": 25_000}),
    ({"rule": "kill_switch", "tool": "", "value": 0, "previous": None}, {"value": 1}),
    ({"rule": "same_effect", "value": 24, "previous": 24}, {"value": 25}),
    ({"rule": "customer_day", "tool": "", "value": 5, "previous": None}, {"value": 4}),
]


@pytest.mark.parametrize(("first", "then"), STRICTER, ids=str)
def test_one_tightens_at_once(web: Connection, owner: Connection, first: dict[str, Any], then: dict[str, Any]) -> None:
    insert(web, **first)
    insert(web, **first | then)
    assert owner.execute("SELECT count(*) FROM public.agent_policy").fetchone() == (2,)


@pytest.mark.parametrize("login", ["agent", "outbox", "keeper"])
def test_no_other_login_sets_or_confirms_anything(connect: Any, web: Connection, login: str) -> None:
    request = ask(web)
    conn = connect(login)
    for statement in (
        "INSERT INTO public.agent_policy (rule, value, reason, set_by) VALUES ('per_call', 1, 'x', 1)",
        "INSERT INTO public.agent_policy_request (rule, value, reason, asked_by) VALUES ('per_call', 1, 'x', 1)",
        f"UPDATE public.agent_policy_request SET outcome = 'confirmed' WHERE id = {request}",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            conn.execute(statement)


def ask(web: Connection, **changes: Any) -> int:
    [request] = web.execute(
        "INSERT INTO public.agent_policy_request (rule, tool, currency, value, reason, asked_by)"
        " VALUES (%(rule)s, %(tool)s, %(currency)s, %(value)s, 'because', 1) RETURNING id",
        GIVEN | {"value": 30_000} | changes,
    ).fetchone() or (0,)
    return int(request)


def ends(web: Connection, request: int, outcome: str = "confirmed", by: int = 2) -> None:
    statement = "UPDATE public.agent_policy_request SET ended_at = now(), ended_by = %s, outcome = %s WHERE id = %s"
    web.execute(statement, (by, outcome, request))


def test_two_loosen(web: Connection, owner: Connection) -> None:
    request = ask(web)
    ends(web, request)
    insert(web, value=30_000, confirmed_by=2, request=request)
    assert owner.execute("SELECT value, previous, set_by, confirmed_by FROM public.agent_policy").fetchone() == (
        30_000,
        25_000,
        1,
        2,
    )


FORGED = [
    {"value": 30_001},
    {"currency": "EUR"},
    {"tool": "ApplyCredit"},
    {"confirmed_by": 3},
    {"confirmed_by": None},
    {"request": None},
]


@pytest.mark.parametrize("changes", FORGED, ids=str)
def test_what_was_confirmed_is_what_counts(web: Connection, changes: dict[str, Any]) -> None:
    request = ask(web)
    ends(web, request)
    with pytest.raises((errors.CheckViolation, errors.InsufficientPrivilege)):
        insert(web, **{"value": 30_000, "confirmed_by": 2, "request": request} | changes)


def test_a_confirmation_counts_once(web: Connection) -> None:
    request = ask(web)
    ends(web, request)
    insert(web, value=30_000, confirmed_by=2, request=request)
    with pytest.raises(errors.UniqueViolation):
        insert(web, value=30_000, confirmed_by=2, request=request)


@pytest.mark.parametrize(("outcome", "by"), [("confirmed", 1), ("refused", 1), ("withdrawn", 2)])
def test_nobody_ends_a_request_that_is_not_theirs_to_end(web: Connection, outcome: str, by: int) -> None:
    request = ask(web)
    with pytest.raises(errors.CheckViolation):
        ends(web, request, outcome, by)


@pytest.mark.parametrize("login", ["web", "owner"])
def test_what_has_ended_is_not_changed(connect: Any, web: Connection, login: str) -> None:
    request = ask(web)
    ends(web, request, "refused")
    conn = connect(login)
    for statement in (
        "UPDATE public.agent_policy_request SET ended_at = NULL, ended_by = NULL, outcome = NULL",
        "UPDATE public.agent_policy_request SET outcome = 'confirmed'",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            conn.execute(statement)


def test_one_request_waits_for_one_number(web: Connection) -> None:
    ends(web, ask(web), "refused")
    ask(web)
    with pytest.raises(errors.UniqueViolation):
        ask(web, value=40_000)


def test_two_changes_at_once_are_one_after_the_other(connect: Any, web: Connection) -> None:
    """Both would be stricter than what counted when they began; the later one is looser than the earlier."""
    insert(web)
    other = connect("web")
    other.execute("SET lock_timeout = '100ms'")
    with web.transaction():
        insert(web, value=20_000)
        with pytest.raises(errors.LockNotAvailable):
            insert(other, value=22_000)
    with pytest.raises(errors.CheckViolation):
        insert(other, value=22_000)
