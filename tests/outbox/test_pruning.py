"""What is old and finished goes with its evidence; what a row elsewhere refers to stays, and so does what is not finished."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import errors

from outbox import pruning
from tests.outbox.desk import Desk

BEFORE = datetime.now(UTC) - timedelta(days=400)
MAKE = """
INSERT INTO public.outbox_message (topic, destination, aggregate, dedupe_key, payload, steps, repeat, state, created_at,
    first_sent_at, finished_at, outcome_source)
SELECT %(topic)s, 'email', 'escalation:' || n, 'made:' || gen_random_uuid(), %(payload)s, '[]', 'harmless', %(state)s,
    now() - make_interval(days => %(days)s), now() - make_interval(days => %(days)s),
    CASE WHEN %(state)s IN ('succeeded', 'rejected') THEN now() - make_interval(days => %(days)s) END, 'response'
FROM generate_series(1, %(number)s) AS n RETURNING id
"""
EVIDENCE = "INSERT INTO public.outbox_delivery (message_id, step, outcome, duration_ms) VALUES (%s, 'send', 'succeeded', 1)"
ASK = (
    "INSERT INTO public.outbox_request (message_id, kind, reason, requested_by, carried_out_at) VALUES (%s, 'replay', 'x', 1, {})"
)
ESCALATION = """
INSERT INTO public.escalations_escalation (kind, object, payload, state) VALUES ('unknown_outcome', %s, '{}', %s) RETURNING id
"""


def made(desk: Desk, number: int = 1, *, days: int = 500, state: str = "succeeded", topic: str = "notify.email") -> list[int]:
    given = {"topic": topic, "payload": '{"escalation": 1}', "state": state, "days": days, "number": number}
    return [row[0] for row in desk.owner.execute(MAKE, given).fetchall()]


def left(desk: Desk) -> set[int]:
    return {row[0] for row in desk.owner.execute("SELECT id FROM public.outbox_message").fetchall()}


def prune(keeper: Any) -> None:
    assert pruning.messages(keeper, before=BEFORE) is None


def test_it_takes_what_is_old_with_its_evidence_and_what_was_asked(desk: Desk, keeper: Any) -> None:
    old, young = made(desk), made(desk, days=399)
    for message in (*old, *young):
        desk.owner.execute(EVIDENCE, (message,))
        desk.owner.execute(ASK.format("now()"), (message,))

    prune(keeper)

    assert left(desk) == set(young)
    for table in ("outbox_delivery", "outbox_request"):
        assert desk.owner.execute(f"SELECT message_id FROM public.{table}").fetchall() == [(young[0],)]


@pytest.mark.parametrize("state", ["ready", "uncertain", "accepted", "dead"])
def test_it_keeps_what_is_not_finished(desk: Desk, keeper: Any, state: str) -> None:
    kept = made(desk, state=state)

    prune(keeper)

    assert left(desk) == set(kept)


def test_it_keeps_what_somebody_has_just_asked_for(desk: Desk, keeper: Any) -> None:
    (kept,) = made(desk)
    desk.owner.execute(ASK.format("NULL"), (kept,))

    prune(keeper)

    assert left(desk) == {kept}


def test_it_keeps_what_the_books_and_the_trail_refer_to(desk: Desk, keeper: Any) -> None:
    invoice = desk.paid()
    desk.refund(invoice)
    desk.deliver()
    years = "UPDATE public.outbox_message SET created_at = now() - interval '2 years', finished_at = now() - interval '2 years'"
    desk.owner.execute(years)
    before = left(desk)

    prune(keeper)

    assert left(desk) == before and len(before) == 2


def test_it_keeps_what_settling_changed_rows_for(desk: Desk, keeper: Any) -> None:
    (kept, gone) = made(desk, 2)
    desk.owner.execute(
        "INSERT INTO public.ledger_row_change (message_id, login, table_name, operation) VALUES (%s, 'x', 'x', 'INSERT')", (kept,)
    )

    prune(keeper)

    assert left(desk) == {kept}
    assert gone not in left(desk)


def test_it_keeps_what_a_question_is_about_and_notices_of_one_that_waits(desk: Desk, keeper: Any) -> None:
    (about, told, gone) = made(desk, 3)
    desk.owner.execute(ESCALATION, (f"message:{about}", "done"))
    ((waits,),) = desk.owner.execute(ESCALATION, ("thread:x", "open")).fetchall()
    for message, escalation in ((about, 4711), (told, waits), (gone, 4711)):
        desk.owner.execute(
            "UPDATE public.outbox_message SET payload = jsonb_build_object('escalation', %s::bigint) WHERE id = %s",
            (escalation, message),
        )

    prune(keeper)

    assert left(desk) == {about, told}


def test_it_walks_through_all_of_them_in_chunks(desk: Desk, keeper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "CHUNK", 3)
    made(desk, 4)
    kept = [*made(desk, 4, state="dead"), *made(desk, 2, days=10)]
    made(desk, 3)  # written late, finished long ago

    prune(keeper)

    assert left(desk) == set(kept)


def test_it_goes_on_where_it_stopped(desk: Desk, keeper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "CHUNK", 2)
    ids, answers = made(desk, 6), iter([True, False])

    after = pruning.messages(keeper, before=BEFORE, go_on=lambda: next(answers))

    assert after == ids[1]
    assert left(desk) == set(ids[2:])
    assert pruning.messages(keeper, before=BEFORE, after=after) is None
    assert left(desk) == set()


def test_the_database_keeps_what_is_young_whoever_asks(desk: Desk, keeper: Any, web: Any, outbox: Any) -> None:
    (message,) = made(desk, days=29)
    soon = datetime.now(UTC) - timedelta(days=29)
    call = "SELECT public.outbox_prune(%s::bigint[], %s)"
    with pytest.raises(errors.InsufficientPrivilege, match="younger than 30 days"):
        keeper.execute(call, ([message], soon))
    with pytest.raises(errors.InsufficientPrivilege, match="younger than 30 days"):
        keeper.execute("SELECT public.outbox_prune_events(%s, 1)", (soon,))
    for conn in (web, outbox, desk.agent):
        with pytest.raises(errors.InsufficientPrivilege):
            conn.execute(call, ([message], BEFORE))
    assert left(desk) == {message}


def test_evidence_stays_as_long_as_its_message(desk: Desk) -> None:
    (message,) = made(desk)
    desk.owner.execute(EVIDENCE, (message,))

    for statement in ("DELETE FROM public.outbox_delivery", "SET backstop.pruning = 'on'; DELETE FROM public.outbox_delivery"):
        with pytest.raises(errors.InsufficientPrivilege, match="append-only"):
            desk.owner.execute(statement)


EVENT = """
INSERT INTO public.outbox_webhook_event (event_id, type, object_id, payload, received_at, processed_at)
VALUES (%(id)s, 'payment_intent.succeeded', %(object)s, '{}', now() - make_interval(days => %(days)s),
    CASE WHEN %(processed)s THEN now() - make_interval(days => %(days)s) END)
"""


def test_it_takes_old_events_whose_message_is_gone(desk: Desk, keeper: Any) -> None:
    message = desk.charge()
    desk.deliver()
    ours = desk.read(message)["provider_id"]
    for name, about, days, processed in (
        ("evt_gone", "pi_gone", 500, True),
        ("evt_ours", ours, 500, True),
        ("evt_young", "pi_gone", 30, True),
        ("evt_open", "pi_gone", 500, False),
    ):
        desk.owner.execute(EVENT, {"id": name, "object": about, "days": days, "processed": processed})

    assert pruning.events(keeper, before=BEFORE) == 1

    assert {row[0] for row in desk.owner.execute("SELECT event_id FROM public.outbox_webhook_event").fetchall()} == {
        "evt_ours",
        "evt_young",
        "evt_open",
    }
