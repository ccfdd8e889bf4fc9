"""What `manage.py check_invariants` says, to people and to machines; and that the documentation lists what is checked."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from config import commands, guarantees
from ledger import invariants
from tests import databases, plugin
from tests.architecture import sources

Connection = psycopg.Connection[Any]


@pytest.fixture(autouse=True)
def as_keeper(database: None, settings: Any, tmp_path: Path) -> None:
    """Let the command run as its login, for an instance without a sandbox."""
    settings.DATABASE_URL = databases.address(admin=plugin.ADMIN, database=plugin.DATABASE, login="keeper")
    settings.DATA_DIR = tmp_path


@pytest.fixture
def lonely(owner: Connection, superuser: Connection) -> Iterator[None]:
    """Make 25 customers who have no account, in the order in which they are read."""
    databases.renew(superuser)
    owner.execute(
        "INSERT INTO public.billing_customer (name, email, currency)"
        " SELECT 'Nobody', number || '@example.test', 'EUR' FROM generate_series(1, 25) AS number"
    )
    yield


def run(*words: str) -> tuple[str, int]:
    """Return what the command printed and its exit code."""
    out, code = StringIO(), 0
    try:
        call_command("check_invariants", *words, stdout=out)
    except SystemExit as ended:
        code = int(str(ended.code))
    return out.getvalue(), code


def test_it_runs_as_the_keeper() -> None:
    assert commands.login_for(["check_invariants", "--json"]) == "keeper"


def test_it_says_in_two_lines_that_nothing_is_violated() -> None:
    number = len(invariants.every())
    said = "The books were not compared with the provider: this instance has no Stripe sandbox."
    assert run() == (f"{number} invariants checked, none violated.\n{said}\n", 0)


def test_without_a_database_it_says_that_nothing_was_checked(settings: Any, tmp_path: Path) -> None:
    settings.DATABASE_URL = f"postgresql://keeper@/backstop?host={tmp_path}"
    with pytest.raises(CommandError, match="Nothing was checked") as caught:
        run()
    assert caught.value.returncode == 2


def test_it_names_what_is_violated_with_its_sentence_and_some_rows(lonely: None) -> None:
    printed, code = run()
    assert code == 1
    lines = printed.splitlines()
    assert lines[0] == f"{len(invariants.every())} invariants checked, 1 violated."
    assert lines[2:4] == ["billing.customer_has_account (guarantee 1)", "  Every customer has a credit account."]
    assert lines[4] == '  - customer_id=1, name="Nobody"'
    assert sum(line.startswith("  - ") for line in lines) == 20
    assert "  … and 5 more" in lines


def test_it_says_the_same_to_machines(lonely: None) -> None:
    printed, code = run("--json")
    said = json.loads(printed)
    assert code == 1
    assert said["checked"] == len(invariants.every())
    [violation] = said["violations"]
    assert (violation["invariant"], violation["count"], len(violation["rows"])) == ("billing.customer_has_account", 25, 20)
    assert said["provider"]["compared"] is False


def test_it_ends_with_one_when_the_sandbox_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "instance.json").write_text(json.dumps({"stripe": {"api_base": "http://127.0.0.1:9", "api_key": "sk_test_x"}}))
    printed, code = run()
    assert code == 1
    assert "The Stripe sandbox at http://127.0.0.1:9 did not answer" in printed


def test_it_tells_how_long_each_took() -> None:
    assert len(json.loads(run("--json", "--times")[0])["ms"]) == len(invariants.every())
    assert run("--times")[0].count(" ms  ") == len(invariants.every())


def test_the_documentation_lists_every_invariant() -> None:
    written = (sources.ROOT / "docs" / "invariants.md").read_text()
    assert written == guarantees.document(), "run manage.py document_invariants"


def test_every_invariant_belongs_to_a_guarantee_and_each_guarantee_has_one() -> None:
    assert {one.guarantee for one in invariants.every()} == set(guarantees.GUARANTEES)
    for one in invariants.every():
        assert one.says.endswith(".") and bool(one.query) != bool(one.look)
