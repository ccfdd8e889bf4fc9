"""A used database contradicts no invariant; each one broken by hand is found, by its name and no other's."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from ledger import invariants
from ledger.invariants import Invariant
from tests import databases, plugin
from tests.invariants import breaks, more_breaks, usage

Connection = psycopg.Connection[Any]
BREAKS = breaks.BREAKS | more_breaks.BREAKS
ALSO: dict[str, set[str]] = breaks.ALSO | more_breaks.ALSO
SECRETS = "config.no_secret_in_text"
SLOW = {SECRETS, "agent.transcript_is_the_memory"}
# Of several words for one thing, each must be found.
LOOKS_LIKE = {
    "a card's digits together": "4242424242424242",
    "in groups": "4000-0000-0000-0002",
    "in the groups of another brand": "3782 822463 10005",
    "the provider's key": "sk_live_0123456789abcdef",
    "a webhook secret": "whsec_0123456789abcdef01",
    "an address with its password": "postgresql://backstop_owner:hunter2@db/backstop",
}
LOOKS_OTHERWISE = {
    "digits that are no card's": "4242424242424241",
    "an amount": "1000000000000",
    "a time": "2026-11-30 04:58:00.123456",
    "an id of the provider": "pi_4242424242424242",
    "a uuid": "42424242-4242-4242-8242-424242424242",
}


@pytest.fixture(scope="module")
def used(superuser: Connection, tmp_path_factory: pytest.TempPathFactory) -> Connection:
    """Return the superuser's connection to a database that was used."""
    with usage.connected(superuser, tmp_path_factory.mktemp("stripe")) as opened:
        usage.live(opened)
    return superuser


@contextmanager
def undone(conn: Connection) -> Iterator[None]:
    """Undo at the end whatever was broken."""
    with conn.transaction(force_rollback=True):
        conn.execute("SET LOCAL session_replication_role = replica")
        yield


def broken(conn: Connection, *, expected: Collection[str], quiet: bool = False) -> set[str]:
    """Return the names of what is contradicted or cannot be checked; of the slow ones only those that are expected."""
    asked = [one for one in invariants.every() if one.name not in SLOW or one.name in expected]
    return {found.invariant.name for found in invariants.findings(conn, quiet=quiet, invariants=asked) if not found.holds}


@pytest.mark.parametrize("quiet", [False, True])
def test_a_used_database_contradicts_nothing(used: Connection, quiet: bool) -> None:
    address = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="keeper")
    with psycopg.connect(address, autocommit=True) as keeper:
        assert invariants.check(keeper, quiet=quiet) == []


def test_every_invariant_is_broken_by_a_test() -> None:
    names = [invariant.name for invariant in invariants.every()]
    assert names == sorted(BREAKS)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", BREAKS)
def test_what_is_broken_is_found_by_its_name(used: Connection, name: str) -> None:
    expected = {name} | ALSO.get(name, set())
    with undone(used):
        used.execute(BREAKS[name])
        assert broken(used, expected=expected) == expected


@pytest.mark.parametrize("name", [one.name for one in invariants.every() if one.age])
def test_what_is_under_way_is_found_at_once_when_all_is_quiet(used: Connection, name: str) -> None:
    young = BREAKS[name].replace("'1 hour'", "'1 second'").replace("'2 hours'", "'1 second'")
    expected = {name} | ALSO.get(name, set())
    with undone(used):
        used.execute(young)
        assert broken(used, expected=expected) == set()
        assert broken(used, expected=expected, quiet=True) == expected


@pytest.mark.parametrize("text", LOOKS_LIKE.values(), ids=LOOKS_LIKE.keys())
def test_a_secret_is_found_in_a_text(used: Connection, text: str) -> None:
    with undone(used):
        used.execute("UPDATE public.agent_notice SET text = 'Note: ' || %s || '.'", (text,))
        assert SECRETS in broken(used, expected={SECRETS})


@pytest.mark.parametrize("text", LOOKS_OTHERWISE.values(), ids=LOOKS_OTHERWISE.keys())
def test_what_only_resembles_a_secret_is_left_alone(used: Connection, text: str) -> None:
    with undone(used):
        used.execute("UPDATE public.agent_notice SET text = 'Note: ' || %s || '.'", (text,))
        assert SECRETS not in broken(used, expected={SECRETS})


def test_a_secret_is_not_repeated(used: Connection) -> None:
    with undone(used):
        used.execute(BREAKS[SECRETS])
        [found] = invariants.findings(used, invariants=[one for one in invariants.every() if one.name == SECRETS])
        [row] = found.rows
        assert row.pop("row").isdigit()
        assert row == {"table": "agent_policy", "column": "reason", "looks_like": "card number"}


def test_one_that_cannot_be_checked_is_a_violation_and_keeps_no_other_from_being_checked(used: Connection) -> None:
    bad = Invariant(name="x.y", guarantee=1, says="It fails.", query="SELECT 1 / 0 AS one")
    good = Invariant(name="x.z", guarantee=1, says="It does not.", query="SELECT 1 AS one FROM generate_series(1, 150)")
    with undone(used):
        failed, found = invariants.findings(used, invariants=[bad, good])
    assert (failed.holds, failed.error) == (False, "DivisionByZero: division by zero")
    assert (found.count, len(found.rows)) == (150, 100)


def test_a_check_reads_one_moment_and_can_write_nothing(used: Connection) -> None:
    with invariants.snapshot(used), pytest.raises(psycopg.errors.ReadOnlySqlTransaction), used.transaction():
        used.execute("DELETE FROM public.agent_draft")
    with invariants.snapshot(used):
        assert used.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
