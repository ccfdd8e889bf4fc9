"""Scans as rows: who asks for them, who takes them, and what becomes of one that cannot look."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import errors

from escalations import pruning
from escalations.reconciling import looking, scanning, scans
from ledger import reconciling
from ledger.marks import Mark
from ledger.reconciling import Check, Disagreement, Looking
from tests.escalations import scanned
from tests.escalations.scenes import person

ROWS = "SELECT asked_by, finished_at IS NOT NULL FROM public.escalations_scan ORDER BY id"


def check(name: str, look: Any, **more: Any) -> Check:
    return Check(name=name, holds="", mark=Mark(state="info", icon="eye", word="x"), ours="", theirs="", look=look, **more)


def disagrees(looking: Looking) -> Any:
    yield Disagreement(object="x:1", about="X", sentence="They differ.", exits=("compensate",))


def breaks(looking: Looking) -> Any:
    yield from looking.rows("SELECT 1 / 0")


def test_beat_scans_every_now_and_then_and_not_while_one_is_asked_for(outbox: Any, owner: Any) -> None:
    assert scanning.work(outbox, get=None) == 1
    assert scanning.work(outbox, get=None) == 0
    owner.execute("UPDATE public.escalations_scan SET asked_at = now() - interval '11 min'")
    assert scanning.work(outbox, get=None) == 1
    assert outbox.execute(ROWS).fetchall() == [(None, True), (None, True)]


def test_two_workers_never_take_the_same(outbox: Any, connect: Any, web: Any) -> None:
    scans.ask(web, user=7)
    first, other = scans.take(outbox), scans.take(connect("outbox"))
    assert first
    assert other is None


def test_one_that_a_lost_worker_has_is_taken_from_it(outbox: Any, owner: Any, web: Any) -> None:
    scans.ask(web, user=7)
    assert scans.take(outbox)
    assert scanning.work(outbox, get=None) == 0
    owner.execute("UPDATE public.escalations_scan SET started_at = now() - interval '11 min'")
    assert scanning.work(outbox, get=None) == 1


def test_a_check_that_fails_keeps_no_other_from_looking(outbox: Any) -> None:
    found = looking.everything(outbox, get=None, checks=[check("a", breaks), check("b", disagrees)])
    assert (found.looked, list(found.disagreements)) == (["b"], ["x:1"])
    assert found.error == "a: division by zero."


def test_a_check_of_the_provider_is_left_out_where_it_cannot_be_asked(outbox: Any) -> None:
    found = looking.everything(outbox, get=None, checks=[check("a", disagrees, provider=True)])
    assert (found.looked, found.errors) == ([], {})


def test_whatever_is_about_the_same_thing_is_asked_about_once(outbox: Any, connect: Any) -> None:
    found = looking.everything(outbox, get=None, checks=[check("a", disagrees), check("b", disagrees)])
    (name, one), *others = found.disagreements.values()
    assert (name, others) == ("a", [])
    cases = {scanning.open_for(conn, name=name, one=one) for conn in (outbox, connect("outbox"))}
    assert len(cases) == 1


def test_many_disagreements_are_one_fault(outbox: Any) -> None:
    def many(looking: Looking) -> Any:
        for number in range(looking_most + 5):
            yield Disagreement(object=f"x:{number}", about="X", sentence="They differ.")

    looking_most = looking.MOST
    found = looking.everything(outbox, get=None, checks=[check("a", many)])
    assert len(found.disagreements) == looking.MOST


def test_only_the_system_says_that_something_is_gone(outbox: Any) -> None:
    case = scanning.open_for(outbox, name="a", one=next(disagrees(Looking(conn=outbox))))
    for kind, by in (("adopt", None), ("settle", person("priya", "reviewer").id)):
        with pytest.raises(errors.InsufficientPrivilege), outbox.transaction():
            outbox.execute(
                "INSERT INTO public.escalations_decision (escalation_id, kind, text, waived, decided_by)"
                " VALUES (%s, %s, '', '[]', %s)",
                (case, kind, by),
            )


def test_every_check_has_a_name_of_its_own_and_its_words() -> None:
    every = reconciling.every()
    assert len({one.name for one in every}) == len(every) == 9
    assert all(
        one.holds.endswith(".") and one.name.partition(".")[0] in ("agent", "billing", "ledger", "outbox") for one in every
    )


def test_old_scans_go(outbox: Any, keeper: Any) -> None:
    made = (
        "INSERT INTO public.escalations_scan (asked_at, started_at, finished_at)"
        " SELECT at, at, CASE WHEN finished THEN at END FROM (VALUES (now() - interval '500 days', true),"
        " (now() - interval '500 days', false), (now() - interval '399 days', true)) AS made (at, finished)"
    )
    outbox.execute(made)
    assert pruning.scans(keeper, before=datetime.now(UTC) - timedelta(days=400)) == 1
    assert outbox.execute("SELECT count(*), count(finished_at) FROM public.escalations_scan").fetchone() == (2, 1)
    with pytest.raises(errors.InsufficientPrivilege, match="younger than 30 days"):
        pruning.scans(keeper, before=datetime.now(UTC))


def test_a_scan_of_nothing_says_what_was_compared(outbox: Any) -> None:
    assert scanned.scan(outbox) == scanned.CLEAN
    counts = outbox.execute("SELECT counts FROM public.escalations_scan").fetchone()[0]
    assert set(counts) == {"accounts", "executions", "invoices", "messages"}
