"""Every decision, before and after the calls got their answers: through the real graph, to what the database says then."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agent import preamble
from escalations import facts, lifecycle
from tests.agent.batches import move_credit
from tests.agent.scripts import calls, says
from tests.agent.talks import Talk

PERIOD = "2025-11-01"
LIMIT = (
    "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by)"
    " VALUES ('per_call', %s, 'EUR', %s, 'a test', 1)"
)


def invoice(talk: Talk, amount: int = 48_000) -> dict[str, Any]:
    return {"customer_id": talk.customer, "billing_period": PERIOD, "amount_minor": amount, "currency": "EUR"}


def step(talk: Talk, *, credit: int = 12_000) -> dict[str, Any]:
    return calls(("CreateInvoice", invoice(talk)), ("ApplyCredit", invoice(talk, credit)))


def script(talk: Talk) -> tuple[Any, ...]:
    return step(talk), says("Done.")


def held(talk: Talk) -> None:
    """Ask before the calls have answers: an invoice above its limit, and credit used on it."""
    talk.web.execute(LIMIT, ("CreateInvoice", 1000))
    talk.say("Invoice November and use the credit")
    assert talk.drive(*script(talk)) == "waiting"


def rolled_back(talk: Talk) -> None:
    """Ask after answers: three attempts to use more credit than there is."""
    talk.say("Use the credit")
    assert talk.drive(*[step(talk, credit=15_000 + n) for n in range(3)], says("Done.")) == "waiting"


def goes_on(talk: Talk) -> str:
    """Drive on, whatever the model said before."""
    return talk.drive(*[says("")] * sum(m.type == "ai" for m in talk.messages()), says("Done."))


def told(talk: Talk) -> list[str]:
    """Return what the model reads of its newest step."""
    return [str(m.text) for m in talk.messages() if m.type == "tool"][-2:]


def untouched(talk: Talk) -> bool:
    counts = [talk.one(f"SELECT count(*) FROM public.{table}") for table in ("billing_invoice", "ledger_execution")]
    return counts == [0, 0] and talk.one("SELECT balance_minor FROM public.billing_credit_account") == 12_000


def books(talk: Talk) -> tuple[int, int, int]:
    """Return the invoice's amount, what is due of it, and the credit that is left."""
    amount, due = talk.one("SELECT amount_minor, amount_due_minor FROM public.billing_invoice")
    return amount, due, talk.one("SELECT balance_minor FROM public.billing_credit_account")


def newest(talk: Talk) -> tuple[Any, ...]:
    query = "SELECT outcome, generation FROM public.ledger_attempt_outcome ORDER BY closed_at DESC LIMIT 1"
    return tuple(talk.one(query))


def previews(talk: Talk) -> list[tuple[Any, ...]]:
    """Return (revision's number, outcome) of every preview, oldest first."""
    return talk.rows(
        "SELECT r.number, p.outcome FROM public.escalations_preview p JOIN public.escalations_revision r ON r.id = p.revision_id"
        " ORDER BY p.id"
    )


def edit(talk: Talk, *given: dict[str, Any], **how: Any) -> None:
    """Change the proposal and let the agent's worker show what that would do; the thread waits on."""
    talk.revise(*given, **how)
    assert talk.drive(says("never")) == "waiting"


# -- previews ----------------------------------------------------------------------------------


def test_it_shows_what_would_happen_in_the_drive_that_asks(talk: Talk) -> None:
    held(talk)
    assert previews(talk) == [(0, "clean")]
    changes = talk.one("SELECT changes FROM public.escalations_preview")
    assert [change["table_name"] for change in changes][:1] == ["billing_invoice"]
    assert talk.one("SELECT allowed FROM public.escalations_preview") is False
    assert untouched(talk)
    assert talk.state() == "waiting"
    kinds = talk.rows("SELECT kind FROM public.agent_event WHERE thread = %s AND kind = 'escalation'", talk.thread)
    assert len(kinds) == 2  # it was asked, and the preview was made


def test_it_makes_a_preview_that_a_page_asks_for_and_leaves_messages_waiting(talk: Talk) -> None:
    held(talk)
    talk.say("Are you there?")
    assert talk.drive(says("never")) == "waiting"
    fence = talk.one("SELECT fence FROM public.agent_thread")
    edit(talk, {"index": 0, "arguments": invoice(talk, 40_000)}, {"index": 1, "arguments": invoice(talk, 50_000)})
    assert previews(talk) == [(0, "clean"), (1, "fails")]
    failure = talk.one("SELECT failure FROM public.escalations_preview ORDER BY id DESC LIMIT 1")
    assert failure["sentence"].startswith("The credit balance is €120.00")
    assert talk.one("SELECT fence FROM public.agent_thread") == fence + 1
    assert talk.one("SELECT state FROM public.agent_staff_message WHERE number = 2") == "queued"
    assert untouched(talk)


def test_it_makes_no_preview_of_what_is_decided(talk: Talk) -> None:
    held(talk)
    talk.revise({"index": 0, "arguments": invoice(talk, 40_000)})
    talk.decide("reject", "Wrong month.")
    assert goes_on(talk) == "idle"
    assert previews(talk) == [(0, "clean"), (1, None)]


def test_it_previews_what_a_retry_would_do_when_somebody_asks(talk: Talk) -> None:
    rolled_back(talk)
    assert previews(talk) == []
    lifecycle.ask_preview(talk.web, escalation=talk.question(), user=talk.reviewer)
    assert talk.drive(says("never")) == "waiting"
    assert previews(talk) == [(0, "fails")]


# -- before answers ----------------------------------------------------------------------------


def test_it_runs_what_was_approved_as_the_same_generation(talk: Talk) -> None:
    held(talk)
    talk.decide("approve")
    assert goes_on(talk) == "idle"
    assert books(talk) == (48_000, 36_000, 0)
    assert newest(talk) == ("committed", 0)
    assert all(text.startswith("{") for text in told(talk))
    assert talk.escalations() == [("approval", "done")]


def test_it_runs_what_was_changed_and_says_so(talk: Talk) -> None:
    held(talk)
    edit(talk, {"index": 0, "arguments": invoice(talk, 40_000)}, {"index": 1, "arguments": invoice(talk, 12_000)})
    talk.sign()
    assert goes_on(talk) == "idle"
    assert books(talk) == (40_000, 28_000, 0)
    assert newest(talk) == ("committed", 1)
    assert told(talk)[0].startswith("APPLIED AS CHANGED BY A REVIEWER (amount_minor: 48000 → 40000): {")
    assert told(talk)[1].startswith("{")
    assert talk.rows("SELECT generation, performed_by FROM public.ledger_execution") == [(1, None)] * 2


def test_it_leaves_out_what_was_removed_and_says_why(talk: Talk) -> None:
    held(talk)
    edit(talk, {"index": 0, "arguments": invoice(talk)}, text="The credit stays.")
    talk.sign()
    assert goes_on(talk) == "idle"
    assert books(talk) == (48_000, 48_000, 12_000)
    assert told(talk)[1] == "NOT APPLIED: a reviewer removed this call. The credit stays. Do not send it again."
    assert talk.rows("SELECT call_index FROM public.ledger_execution") == [(0,)]


@pytest.mark.parametrize("bring", [held, rolled_back])
def test_it_runs_what_a_person_took_over_as_theirs(talk: Talk, bring: Callable[[Talk], None]) -> None:
    bring(talk)
    ids = [m.id for m in talk.messages()]
    edit(talk, *({"index": n, "arguments": invoice(talk, a)} for n, a in enumerate((48_000, 12_000))), as_person=True)
    talk.sign()
    assert goes_on(talk) == "idle"
    assert books(talk) == (48_000, 36_000, 0)
    assert all(text.startswith("APPLIED BY A PERSON") for text in told(talk))
    assert talk.rows("SELECT DISTINCT performed_by, generation FROM public.ledger_execution") == [(talk.editor, 1)]
    assert [m.id for m in talk.messages()][: len(ids)] == ids
    assert talk.one("SELECT kind FROM public.escalations_decision") == "take_over"


@pytest.mark.parametrize(
    ("kind", "text", "read"),
    [
        ("reject", "Wrong month.", "REJECTED: Wrong month. Nothing of this step was saved. Do not send it again."),
        ("withdraw", "", "WITHDRAWN: Support 7 withdrew the request. Nothing of this step was saved. Do not send it again."),
        (
            "answer",
            "Use less.",
            "ANSWERED: A reviewer answers instead of letting this run. Nothing of this step was saved.",
        ),
    ],
)
def test_it_answers_a_step_that_will_not_run(talk: Talk, kind: str, text: str, read: str) -> None:
    held(talk)
    talk.decide(kind, text)
    assert goes_on(talk) == "idle"
    assert all(said.startswith(read) for said in told(talk))
    assert untouched(talk)
    assert newest(talk) == ("rejected", 0)
    assert talk.escalations() == [("approval", "done")]
    roles = [m.type for m in talk.messages()]
    assert roles == ["human", "ai", "tool", "tool", *(["human"] if kind == "answer" else []), "ai"]


def test_it_says_that_nobody_decided_in_time(talk: Talk) -> None:
    held(talk)
    with talk.pool.connection() as conn:
        lifecycle.expire(conn, escalation=talk.question(), text="Nobody decided in time.")
    assert goes_on(talk) == "idle"
    assert all(said.startswith("EXPIRED: Nobody decided in time. Nothing of this step was saved.") for said in told(talk))
    assert talk.rows("SELECT kind, decided_by FROM public.escalations_decision") == [("expire", None)]
    assert talk.escalations() == [("approval", "expired")]
    assert untouched(talk)


def test_it_runs_once_however_many_drive_at_once(talk: Talk) -> None:
    held(talk)
    talk.sign()
    with ThreadPoolExecutor(4) as workers:
        ended = {work.result() for work in [workers.submit(goes_on, talk) for _ in range(4)]}
    assert "idle" in ended
    assert ended <= {"idle", "busy"}
    assert books(talk) == (48_000, 36_000, 0)
    assert talk.rows("SELECT call_index FROM public.ledger_execution ORDER BY 1") == [(0,), (1,)]
    assert talk.rows("SELECT outcome FROM public.ledger_attempt_outcome ORDER BY closed_at") == [("held",), ("committed",)]


# -- after answers -----------------------------------------------------------------------------


def test_it_runs_what_was_changed_after_answers_and_replaces_them(talk: Talk) -> None:
    rolled_back(talk)
    ids, before = [m.id for m in talk.messages()], told(talk)
    edit(talk, {"index": 0, "arguments": invoice(talk)}, {"index": 1, "arguments": invoice(talk, 12_000)})
    talk.sign()
    assert goes_on(talk) == "idle"
    assert books(talk) == (48_000, 36_000, 0)
    assert [m.id for m in talk.messages()][: len(ids)] == ids
    assert told(talk)[1].startswith("APPLIED AS CHANGED BY A REVIEWER (amount_minor: 15002 → 12000): {")
    assert newest(talk) == ("committed", 1)
    query = "SELECT told->1->>'text' FROM public.ledger_attempt_outcome WHERE outcome = 'rolled_back' ORDER BY closed_at"
    kept = talk.rows(query)
    assert kept[-1] == (before[1],)  # the old wording


@pytest.mark.parametrize(
    ("kind", "text", "last"),
    [
        ("close", "No need.", "Reviewer 8 closed this. Nothing more was done. No need."),
        ("withdraw", "", "Support 7 withdrew the request. Nothing more was done."),
        ("expire", "", "Nobody decided in time. Nothing more was done."),
    ],
)
def test_it_ends_the_turn(talk: Talk, kind: str, text: str, last: str) -> None:
    rolled_back(talk)
    if kind == "expire":
        with talk.pool.connection() as conn:
            lifecycle.expire(conn, escalation=talk.question(), text="Nobody decided in time.")
    else:
        talk.decide(kind, text)
    assert talk.drive(says("never")) == "idle"
    assert talk.texts()[-1] == ("ai", last)
    assert untouched(talk)


# -- approved, not run yet ---------------------------------------------------------------------


@pytest.mark.parametrize("edited", [False, True])
def test_it_keeps_what_was_approved_while_the_database_is_away(talk: Talk, superuser: Any, edited: bool) -> None:
    held(talk)
    if edited:
        edit(talk, {"index": 0, "arguments": invoice(talk, 40_000)})
    talk.sign()
    key = preamble.lock_key(talk.thread)
    superuser.execute("SELECT pg_advisory_lock(%s)", (key,))
    try:
        assert goes_on(talk) == "waiting"
    finally:
        superuser.execute("SELECT pg_advisory_unlock(%s)", (key,))
    assert talk.escalations() == [("approval", "resumed"), ("infrastructure", "open")]
    first, second = talk.rows("SELECT id, follows_id FROM public.escalations_escalation ORDER BY id")
    assert second[1] == first[0]
    assert len(talk.one("SELECT payload->'calls' FROM public.escalations_escalation ORDER BY id DESC LIMIT 1")) == 2 - edited
    talk.decide("retry")
    assert goes_on(talk) == "idle"
    assert books(talk) == ((40_000, 40_000, 12_000) if edited else (48_000, 36_000, 0))
    assert told(talk)[0].startswith("APPLIED AS CHANGED" if edited else "{")


# -- approved, but something else would happen now ---------------------------------------------


def follow_up(talk: Talk) -> dict[str, Any]:
    query = "SELECT payload, follows_id, generation FROM public.escalations_escalation ORDER BY id DESC LIMIT 1"
    payload, follows, generation = talk.one(query)
    return dict(payload) | {"follows": follows, "at": generation}


def test_it_asks_again_when_something_changed_since(talk: Talk) -> None:
    held(talk)
    first = talk.question()
    decision = talk.sign().decision
    assert decision
    move_credit(talk.owner, talk.customer, amount_minor=5_000)
    assert goes_on(talk) == "waiting"
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 0
    assert newest(talk) == ("drifted", 0)
    assert talk.escalations() == [("approval", "resumed"), ("approval", "open")]
    asked = follow_up(talk)
    assert (asked["drifted_from"], asked["follows"]) == (decision.id, first)
    assert asked["reason"].startswith("What would happen now is not what was approved.")
    assert talk.drive(says("never")) == "waiting"  # nothing by itself
    assert previews(talk) == [(0, "clean"), (0, "clean")]
    talk.sign()
    assert goes_on(talk) == "idle"
    assert books(talk) == (48_000, 36_000, 5_000)
    assert talk.escalations() == [("approval", "done"), ("approval", "done")]


def test_it_asks_again_about_the_calls_as_they_were_changed(talk: Talk) -> None:
    held(talk)
    edit(talk, {"index": 1, "arguments": invoice(talk, 12_000)}, {"index": 0, "arguments": invoice(talk, 40_000)}, text="Less.")
    talk.sign()
    move_credit(talk.owner, talk.customer, amount_minor=5_000)
    assert goes_on(talk) == "waiting"
    asked = follow_up(talk)
    assert [call["arguments"]["amount_minor"] for call in asked["calls"]] == [40_000, 12_000]
    assert asked["at"] == 1
    talk.sign()
    assert goes_on(talk) == "idle"
    assert books(talk) == (40_000, 28_000, 5_000)
    assert told(talk)[0].startswith("APPLIED AS CHANGED BY A REVIEWER (amount_minor: 48000 → 40000): {")
    assert newest(talk) == ("committed", 1)


def test_it_lets_no_editor_sign_alone_what_came_back(talk: Talk) -> None:
    held(talk)
    edit(talk, {"index": 0, "arguments": invoice(talk, 60_000)}, {"index": 1, "arguments": invoice(talk, 12_000)})
    with pytest.raises(facts.OwnEdit):
        talk.sign(user=talk.editor)
    talk.sign()
    move_credit(talk.owner, talk.customer, amount_minor=5_000)
    assert goes_on(talk) == "waiting"
    with pytest.raises(facts.OwnEdit):
        talk.sign(user=talk.editor)
    talk.sign()
    assert goes_on(talk) == "idle"
    assert books(talk) == (60_000, 48_000, 5_000)


def test_it_asks_again_when_another_rule_stands_in_the_way(talk: Talk) -> None:
    held(talk)
    first = talk.question()
    talk.sign()
    talk.web.execute(LIMIT, ("ApplyCredit", 500))
    assert goes_on(talk) == "waiting"
    assert untouched(talk)
    asked = follow_up(talk)
    assert [(v["rule"], v["call_index"]) for v in asked["verdicts"]] == [("per_call", 1)]
    assert (asked.get("drifted_from"), asked["follows"]) == (None, first)
    talk.sign()
    assert goes_on(talk) == "idle"
    assert books(talk) == (48_000, 36_000, 0)


def test_it_runs_nothing_of_what_drifted_and_was_rejected_then(talk: Talk) -> None:
    held(talk)
    talk.sign()
    move_credit(talk.owner, talk.customer, amount_minor=5_000)
    assert goes_on(talk) == "waiting"
    move_credit(talk.owner, talk.customer, amount_minor=-5_000)  # as it was approved first
    talk.decide("reject", "Too late.")
    assert goes_on(talk) == "idle"
    assert talk.one("SELECT count(*) FROM public.billing_invoice") == 0
    assert told(talk)[0].startswith("REJECTED: Too late.")
