"""The books against the sandbox's own log: they agree after use, and whatever is otherwise at either side is named."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from config import guarantees
from ledger import invariants
from tests.architecture import sources
from tests.invariants import usage
from tests.invariants.usage import Usage
from tests.outbox.provider import API_KEY

Connection = psycopg.Connection[Any]
CHARGE = "(SELECT id FROM public.outbox_message WHERE topic = 'payment.charge' AND state = 'succeeded')"
REFUND = "(SELECT id FROM public.outbox_message WHERE topic = 'payment.refund')"


@pytest.fixture(scope="module")
def used(superuser: Connection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Usage]:
    """Return what a database was used with, and its running sandbox."""
    with usage.connected(superuser, tmp_path_factory.mktemp("stripe")) as opened:
        usage.live(opened)
        yield opened


@pytest.fixture
def instance(used: Usage, tmp_path: Path, settings: Any) -> Path:
    """Make this the instance whose sandbox it is."""
    settings.DATA_DIR = tmp_path
    content = {"stripe": {"api_base": used.provider.base, "api_key": API_KEY}}
    (tmp_path / "instance.json").write_text(json.dumps(content))
    return tmp_path


def names(conn: Connection, *, quiet: bool = True) -> set[str]:
    """Return what the comparison names."""
    return {violation.name for violation in invariants.compare(conn, quiet=quiet).violations}


def test_they_agree_after_use(used: Usage, instance: Path, superuser: Connection) -> None:
    found = invariants.compare(superuser, quiet=True)
    assert (found.compared, found.violations, found.movements) == (True, [], 2)
    assert found.sums == {"eur": {"books": 26_000, "provider": 26_000}}
    assert found.says == "Compared with the Stripe sandbox's 2 movements: the books agree."


def test_it_says_when_there_is_nothing_to_compare_with(superuser: Connection, tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path
    for content in ({}, {"stripe": {}}):
        (tmp_path / "instance.json").write_text(json.dumps(content))
        found = invariants.compare(superuser)
        assert (found.compared, found.violations) == (False, [])
        assert found.says == "The books were not compared with the provider: this instance has no Stripe sandbox."


def test_a_sandbox_that_does_not_answer_is_an_error(instance: Path, superuser: Connection) -> None:
    (instance / "instance.json").write_text(json.dumps({"stripe": {"api_base": "http://127.0.0.1:9", "api_key": API_KEY}}))
    found = invariants.compare(superuser)
    assert [violation.name for violation in found.violations] == ["sandbox.provider_answers"]
    assert not found.compared


# statement → what is named
BREAKS = {
    f"UPDATE public.outbox_message SET uid = gen_random_uuid() WHERE id = {REFUND}": {
        "sandbox.movement_is_ours",
        "sandbox.success_moved",
        "sandbox.sums_agree",
    },
    f"UPDATE public.outbox_message SET state = 'uncertain' WHERE id = {CHARGE}": {
        "sandbox.movement_is_settled",
        "sandbox.sums_agree",
    },
    f"UPDATE public.outbox_message SET steps = jsonb_set(steps, '{{0,params,amount}}', '1') WHERE id = {CHARGE}": {
        "sandbox.movement_is_as_asked"
    },
    "UPDATE public.outbox_message SET state = 'succeeded' WHERE state = 'rejected'": {"sandbox.success_moved"},
    f"UPDATE public.outbox_message SET state = 'rejected' WHERE id = {REFUND}": {
        "sandbox.refusal_moved_nothing",
        "sandbox.sums_agree",
    },
    "UPDATE public.billing_payment SET amount_minor = amount_minor + 1": {"sandbox.sums_agree"},
    f"UPDATE public.outbox_message SET state = 'rejected' WHERE id = {CHARGE}": {
        "sandbox.movement_is_settled",
        "sandbox.refusal_moved_nothing",
        "sandbox.sums_agree",
    },
    # A person says that the money was put right elsewhere: the books are still to follow.
    f"""WITH ended AS (UPDATE public.outbox_message SET state = 'rejected' WHERE id = {CHARGE} RETURNING id)
    INSERT INTO public.outbox_request (message_id, kind, reason, requested_by, carried_out_at)
    SELECT id, 'compensate', 'by hand', 7, now() FROM ended""": {"sandbox.sums_agree"},
    "UPDATE public.billing_refund SET status = 'reversed'": {"sandbox.failed_afterwards", "sandbox.sums_agree"},
}


@contextmanager
def broken(conn: Connection, statement: str) -> Iterator[None]:
    """Undo at the end what the statement does."""
    with conn.transaction(force_rollback=True):
        conn.execute("SET LOCAL session_replication_role = replica")
        conn.execute(statement)
        yield


@pytest.mark.parametrize("statement", BREAKS)
def test_what_is_otherwise_in_the_books_is_named(instance: Path, superuser: Connection, statement: str) -> None:
    with broken(superuser, statement):
        assert names(superuser) == BREAKS[statement]


def test_what_is_under_way_may_have_moved(instance: Path, superuser: Connection) -> None:
    with broken(superuser, f"UPDATE public.outbox_message SET state = 'uncertain' WHERE id = {CHARGE}"):
        assert "sandbox.movement_is_settled" not in names(superuser, quiet=False)


def test_what_is_otherwise_at_the_provider_is_named(used: Usage, instance: Path, superuser: Connection) -> None:
    row = superuser.execute(f"SELECT uid, provider_id, id FROM public.outbox_message WHERE id = {REFUND}").fetchone()
    paid = superuser.execute(f"SELECT provider_id FROM public.outbox_message WHERE id = {CHARGE}").fetchone()
    assert row and paid
    used.provider.settle(row[1], "failed")
    assert names(superuser, quiet=False) == set()  # the event may be on its way
    assert names(superuser) == {"sandbox.failed_afterwards", "sandbox.sums_agree"}
    used.provider.advance(1)
    assert names(superuser, quiet=False) == {"sandbox.failed_afterwards", "sandbox.sums_agree"}
    back = f"""UPDATE public.billing_refund SET status = 'reversed'
        WHERE id = (SELECT (payload ->> 'refund_id')::bigint FROM public.outbox_message WHERE id = {row[2]})"""
    with broken(superuser, back):
        assert names(superuser) == set()
    again = {"payment_intent": paid[0], "amount": 10_000, "metadata[backstop_uid]": str(row[0])}
    used.provider.create("/v1/refunds", key="again", **again)
    assert "sandbox.moved_once" in names(superuser)


def test_every_difference_is_documented() -> None:
    source = (sources.ROOT / "sandbox" / "comparison.py").read_text()
    assert set(re.findall(r'"(sandbox\.[a-z_]+)"', source)) == set(guarantees.COMPARED)


def test_every_difference_is_made_by_a_test() -> None:
    """Those that no statement makes are made in tests of their own."""
    made = {name for expected in BREAKS.values() for name in expected}
    assert made | {"sandbox.provider_answers", "sandbox.moved_once"} == set(guarantees.COMPARED)
