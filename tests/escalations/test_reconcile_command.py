"""manage.py reconcile: says what disagrees, changes nothing unless it is told to."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from tests import databases, plugin
from tests.billing import makers
from tests.escalations import scanned


@pytest.fixture
def as_outbox(settings: Any) -> None:
    settings.DATABASE_URL = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="outbox")


@pytest.fixture
def differs(owner: Any, superuser: Any) -> int:
    customer = makers.make_customer(owner, credit_minor=12_000)
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute("UPDATE public.billing_credit_account SET balance_minor = 13_000")
    return customer


def run(*options: str, code: int | None = 1) -> str:
    out = StringIO()
    if code is None:
        call_command("reconcile", *options, stdout=out)
    else:
        with pytest.raises(SystemExit) as ended:
            call_command("reconcile", *options, stdout=out)
        assert ended.value.code == code
    return out.getvalue()


def test_it_says_that_nothing_disagrees(owner: Any, as_outbox: None) -> None:
    makers.make_customer(owner)
    said = run(code=None)
    assert "1 accounts" in said
    assert "no disagreements." in said
    assert "Not compared, as the provider cannot be asked from here: outbox.provider." in said


def test_it_says_what_disagrees_and_changes_nothing(differs: int, as_outbox: None, outbox: Any) -> None:
    said = run()
    assert f"balance:{differs} (billing.balances)\n  The credit balance is €130.00" in said
    assert "  Balance: €130.00 | €120.00\n  Can be settled by: compensate." in said
    assert scanned.asked(outbox) == []


def test_it_says_the_same_to_a_program(differs: int, as_outbox: None) -> None:
    said = json.loads(run("--json"))
    [one] = said["disagreements"]
    assert (one["object"], one["subject"], one["amount_minor"]) == (f"balance:{differs}", differs, 1_000)
    assert one["facts"][0] == {"name": "Balance", "ours": "€130.00", "theirs": "€120.00", "differs": True}
    assert said["skipped"] == ["outbox.provider"]


def test_it_puts_each_before_a_person_once_when_it_is_told_to(differs: int, as_outbox: None, outbox: Any) -> None:
    assert "1 opened, 0 cleared." in run("--open")
    assert "0 opened, 0 cleared." in run("--open")
    assert [about for _, about, _, _ in scanned.asked(outbox)] == [f"balance:{differs}"]


def test_it_does_not_complain_of_what_a_reviewer_let_stand(differs: int, as_outbox: None, outbox: Any, web: Any) -> None:
    run("--open")
    [(case, _, _, _)] = scanned.asked(outbox)
    scanned.choose(web, case, "compensate", text="A bank fee.")
    assert f"Let stand as it is by a reviewer: balance:{differs}." in run(code=None)
