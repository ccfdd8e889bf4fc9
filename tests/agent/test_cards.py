"""What became of a batch, in words: one card for each thing the staff member has to know."""

import uuid
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone

from agent import batch, conversations, feeds, lines, standing
from agent.cards import Card
from escalations import lifecycle
from ledger import sentences, wiring
from outbox.models import Message
from tests.agent.scenes import Scene, make_user
from tests.agent.test_partial import writes

Connection = psycopg.Connection[Any]
MONTH = {"billing_period": "2026-11-01", "currency": "EUR"}
CREATE = ("CreateInvoice", {**MONTH, "amount_minor": 48_000})
CREDIT = ("ApplyCredit", {**MONTH, "amount_minor": 5_000})
TOO_MUCH = ("ApplyCredit", {**MONTH, "amount_minor": 15_000})
CHARGE = ("QueueCharge", {**MONTH, "amount_minor": 43_000})
MEMO = ("IssueCreditMemo", {**MONTH, "amount_minor": 60_000, "reason": "double billed"})


def items(scene: Scene, *, live: bool = False) -> list[feeds.Item]:
    rows = conversations.read(scene.conversation)
    return feeds.feed(rows, live=live, shown=feeds.untold(rows))


def cards(scene: Scene, *, live: bool = False) -> list[Card]:
    return [part.card for item in items(scene, live=live) for part in item.parts if part.card]


def only(scene: Scene, *, live: bool = False) -> Card:
    (card,) = cards(scene, live=live)
    return card


def words(card: Card) -> list[str]:
    return [line.mark.word for line in card.lines]


def test_it_says_what_was_applied_together(scene: Scene) -> None:
    scene.says("Invoice November.")
    scene.runs(CREATE, CREDIT, CHARGE, text="I will.")
    card = only(scene)
    assert (card.mark.state, card.mark.word, card.says) == ("applied", "Applied", "All 3 calls, together.")
    assert words(card) == ["Applied", "Applied", "Queued"]
    assert "Created invoice" in card.lines[0].sentence
    assert "€430.00" in card.lines[2].sentence
    assert {record.what for record in card.changes} == {"Invoice", "Credit account", "Credit entry"}
    assert not card.undone


def test_it_says_which_call_failed_and_what_became_of_the_others(scene: Scene) -> None:
    scene.says("Invoice November.")
    scene.runs(CREATE, TOO_MUCH, CHARGE)
    card = only(scene)
    assert (card.mark.state, card.says) == ("undone", "Nothing was changed.")
    assert words(card) == ["Not applied: undone", "Failed", "Not applied: never ran"]
    assert [line.gone for line in card.lines] == [True, False, True]
    assert card.lines[1].why.startswith("The credit balance is €50.00")
    assert card.undone
    assert [record.what for record in card.changes] == ["Invoice"]


def test_it_numbers_the_attempts_of_a_request(scene: Scene) -> None:
    scene.says("Invoice November.")
    scene.runs(("LookUpCustomer", {}))
    scene.runs(CREATE, TOO_MUCH)
    scene.runs(CREATE, CREDIT)
    scene.says("Charge it.")
    scene.runs(CHARGE)
    assert [card.number for card in cards(scene)] == [0, 1, 2, 1]


def test_it_says_that_reading_changed_nothing(scene: Scene) -> None:
    scene.runs(("LookUpCustomer", {}))
    card = only(scene)
    assert (card.mark.word, card.says, words(card)) == ("Read", "Nothing was changed.", ["Read"])


def test_it_says_why_an_invalid_batch_was_refused(scene: Scene) -> None:
    scene.runs(CREATE, ("VoidInvoice", {"invoice": "x"}))
    card = only(scene)
    assert (card.mark.word, card.says) == ("Refused", "Nothing ran. Nothing was changed.")
    assert words(card) == ["Not applied: never ran", "Failed"]
    assert "Invalid argument" in card.lines[1].why


def test_it_says_that_writes_are_paused(scene: Scene, web: Connection) -> None:
    web.execute("INSERT INTO public.agent_policy (rule, value, reason, set_by) VALUES ('kill_switch', 1, 'incident', 1)")
    scene.runs(CREATE)
    assert "paused changes" in only(scene).lines[0].why


def held(scene: Scene, *, kind: str | None = None, web: Connection | None = None, text: str = "") -> Any:
    """Bring a batch to a reviewer, and to a decision if `kind` is given."""
    scene.runs(("CreateInvoice", {**MONTH, "amount_minor": 90_000}))
    step = scene.calls(MEMO, CREDIT)
    result = step.runs()
    escalation = step.escalates(result)
    if kind and web:
        reviewer = make_user("reviewer", name="reviewer2")
        lifecycle.decide(web, escalation=escalation, kind=kind, text=text, user=reviewer.pk)
    return step, result


def test_it_says_that_a_batch_waits_and_why(scene: Scene) -> None:
    held(scene)
    card = cards(scene)[-1]
    assert (card.mark.state, card.mark.word, card.says) == ("held", "Waits for a reviewer", "Nothing has run yet.")
    assert words(card) == ["Held", "Waits with its batch"]
    assert card.lines[0].note
    assert card.lines[0].limit == "€600.00 asked, €500.00 allowed (per call, by default)"
    assert card.escalation_id


def test_it_says_who_rejected_it_and_why(scene: Scene, web: Connection) -> None:
    step, _ = held(scene, kind="reject", web=web, text="Not owed.")
    for _ in range(2):  # decided, and carried out
        card = cards(scene)[-1]
        assert (card.mark.word, words(card)) == ("Rejected", ["Not applied: never ran"] * 2)
        assert "Rejected by reviewer2" in card.history[0]
        assert "“Not owed.”" in card.history[0]
        step.runs(rejection="Not owed.")


def test_it_says_that_a_batch_was_stopped(scene: Scene) -> None:
    scene.calls(CREATE).runs(rejection="Stopped by support1.")
    card = only(scene)
    assert (card.mark.word, card.history) == ("Stopped", ("Stopped by support1.",))


def test_it_says_that_a_person_was_asked_and_has_answered(scene: Scene, web: Connection) -> None:
    step = scene.calls(("AskHuman", {"question": "Which month?"}))
    escalation = step.escalates(step.runs(), kind="asked", reason="The agent asks.")
    card = only(scene)
    assert (card.mark.state, card.mark.word) == ("held", "Waits for a reviewer")
    assert "Which month?" in card.lines[0].sentence
    reviewer = make_user("reviewer")
    lifecycle.decide(web, escalation=escalation, kind="answer", text="November.", user=reviewer.pk)
    assert only(scene).mark.word == "Answered"


def test_it_says_that_it_works_or_was_interrupted(scene: Scene) -> None:
    step = scene.calls(CREATE)
    assert only(scene, live=True).mark.word == "Working"
    assert only(scene).says.startswith("Not run yet.")
    _open_attempt(scene, step.batch.ai_message_id)
    assert only(scene, live=True).mark.word == "Working"
    card = only(scene)
    assert card.mark.word == "Interrupted"
    assert card.says.endswith("Nothing was changed.")


def _open_attempt(scene: Scene, message: str, *, outcome: str | None = None, generation: int = 0) -> uuid.UUID:
    """Leave an attempt as a lost worker does, or with an outcome that nobody was told of."""
    attempt = uuid.uuid4()
    with scene.desk.pool.connection() as conn:
        conn.execute(
            "INSERT INTO public.ledger_attempt (id, thread, ai_message_id, generation, subject, on_behalf_of, fence, calls,"
            " model, prompt_version) VALUES (%s, %s, %s, %s, %s, 1, 1, '[]', 'm', '1')",
            (attempt, scene.desk.thread, message, generation, scene.desk.customer),
        )
        if outcome:
            conn.execute(
                "INSERT INTO public.ledger_attempt_outcome (attempt_id, thread, ai_message_id, generation, outcome, calls,"
                " sqlstate, detail) VALUES (%s, %s, %s, %s, %s, '[]', '57P01', 'terminating connection')",
                (attempt, scene.desk.thread, message, generation, outcome),
            )
    return attempt


@pytest.mark.parametrize("outcome", [None, "infrastructure", "lost_lease"])
def test_it_leaves_what_was_superseded_to_the_audit(scene: Scene, outcome: str | None) -> None:
    step = scene.calls(CREATE)
    _open_attempt(scene, step.batch.ai_message_id, outcome=outcome)
    step.runs()
    assert [card.mark.word for card in cards(scene)] == ["Applied"]


@pytest.mark.parametrize("outcome", ["infrastructure", "lost_lease", "bug"])
def test_it_does_not_blame_a_call_for_the_machine(scene: Scene, outcome: str) -> None:
    step = scene.calls(CREATE, CREDIT)
    _open_attempt(scene, step.batch.ai_message_id, outcome=outcome)
    card = only(scene)
    assert card.mark.word == "Undone"
    assert card.says.startswith("It could not be finished.")
    assert card.says.lower().endswith("nothing was changed.")
    assert words(card) == ["Not applied"] * 2
    assert not any(line.why for line in card.lines)


STATES = {
    "ready": ("queued", "Queued"),
    "accepted": ("sent", "Sent"),
    "succeeded": ("confirmed", "Confirmed"),
    "rejected": ("failed", "Refused"),
    "uncertain": ("uncertain", "Uncertain"),
    "dead": ("held", "Needs a person"),
    "cancelled": ("queued", "Withdrawn"),
}


@pytest.mark.parametrize("state", STATES)
def test_it_says_where_an_effect_stands(scene: Scene, state: str) -> None:
    scene.runs(CREATE, ("QueueCharge", {**MONTH, "amount_minor": 48_000}))
    unsent = {"first_sent_at": "NULL"} if state in ("ready", "cancelled") else {}
    scene.settles(state, **unsent)
    line = only(scene).lines[1]
    assert (line.mark.state, line.mark.word) == STATES[state]
    assert [step.place for step in line.fate.steps].count("now") == 1


def test_what_follows_from_an_effect_stands_beside_it_and_not_instead_of_it() -> None:
    payload = {"amount_minor": 10_000, "currency": "EUR", "invoice_id": 7}
    at = {"created_at": timezone.now(), "finished_at": timezone.now(), "first_sent_at": timezone.now()}
    refund = Message(topic="payment.refund", state="succeeded", payload=payload, **at)
    note = Message(topic="payment.credit_note", state="rejected", refusal="invalid_request", payload=payload, **at)
    call = {"index": 0, "id": "a", "tool": "QueueRefund", "arguments": {}}

    line = lines.applied(call, execution=None, effects=[refund, note], undos={})
    html = render_to_string("agent/_card.html", {"card": Card(mark=line.mark, says="", lines=(line,))})

    assert (line.mark.word, line.note) == ("Confirmed", "")
    assert "for the refund of invoice 7" in html and "Refused: invalid request" in html
    assert "The refund stands, and the invoice at the provider does not show it." in html


def test_it_knows_an_end_for_every_state_of_a_message() -> None:
    assert set(STATES) | {"leased"} == set(Message.State.values)


def test_it_tells_a_tool_that_it_never_heard_of(scene: Scene, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.calls(("PaintTheShed", {"colour": "green", "amount_minor": 100}))
    assert only(scene).lines[0].sentence == "Paint the shed"


def test_it_needs_nothing_for_a_new_tool(scene: Scene, settings: Any) -> None:
    settings.BACKSTOP_TOOLS = "tests.agent.shed.TOOLS"
    wiring.plugged.cache_clear(), sentences.tools.cache_clear()
    try:
        scene.runs(("PaintTheShed", {"colour": "green"}))
        card = only(scene)
        assert (card.mark.word, card.lines[0].sentence) == ("Applied", "Painted the shed green")
    finally:
        wiring.plugged.cache_clear(), sentences.tools.cache_clear()


def test_it_puts_news_behind_the_words_that_were_written_without_it(scene: Scene, web: Connection) -> None:
    scene.says("Invoice November.")
    scene.runs(CREATE, text="I will.")
    scene.notice("The charge was refused.")
    scene.answers("The charge is queued.")
    scene.says("And now?")
    assert [item.kind for item in items(scene)] == ["day", "staff", "agent", "notice", "staff"]


def test_it_shows_a_message_until_the_transcript_has_it(scene: Scene) -> None:
    message = scene.queued("Hello")
    rows = conversations.read(scene.conversation)
    assert [row.text for row in rows.queued] == ["Hello"]
    with scene.desk.pool.connection() as conn:
        conn.execute("UPDATE public.agent_staff_message SET state = 'taken', taken_at = now() WHERE id = %s", (message,))
    assert [item.text for item in items(scene) if item.kind == "staff"] == ["Hello"]
    scene._entry(f"staff:{message}", "human", "Hello")
    assert [item.text for item in items(scene) if item.kind == "staff"] == ["Hello"]


def test_it_asks_the_database_as_often_for_a_long_talk_as_for_a_short_one(
    scene: Scene, support: Client, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    for _ in range(12):
        scene.says("Look.")
        scene.runs(("LookUpCustomer", {}))
        scene.runs(CREATE, TOO_MUCH, CHARGE)
    with django_assert_max_num_queries(45):
        support.get(f"/conversations/{scene.conversation.pk}/feed/")


def test_it_says_what_failed_alone_beside_what_was_applied(scene: Scene) -> None:
    tools = {tool.name: tool for tool in (writes(1), writes(2, day=2))}
    step = scene.calls(*[(name, {}) for name in tools])
    batch.run_batch(scene.desk.pool, batch=step.batch, tools=tools)
    card = only(scene)
    assert (card.mark.word, words(card)) == ("Applied in part", ["Applied", "Failed"])
    assert card.says == "1 of 2 calls failed alone; the others do not depend on it."
    assert card.lines[1].why
    assert "do not resend" not in card.lines[1].why


# -- where it stands ---------------------------------------------------------------------------------


def stands(scene: Scene) -> standing.Standing:
    return standing.standing(conversations.read(scene.conversation), now=timezone.now())


def test_it_says_when_it_is_idle_and_when_it_works(scene: Scene) -> None:
    assert stands(scene).words == "Idle"
    scene.stands("running", activity="Writing")
    assert (stands(scene).words, stands(scene).can_stop) == ("Writing…", True)
    scene.stands("running", activity="Writing", leased="-1 minute")
    assert (stands(scene).can_stop, stands(scene).can_resume) == (False, True)


def test_it_says_since_when_it_waits_and_who_looks(scene: Scene, web: Connection) -> None:
    held(scene)
    scene.stands("waiting")
    assert stands(scene).words.startswith("Waits for a reviewer since ")
    reviewer = make_user("reviewer", name="reviewer2")
    lifecycle.claim(web, escalation=cards(scene)[-1].escalation_id, user=reviewer.pk)
    assert stands(scene).words.startswith("Waits for reviewer2 since ")
    assert not stands(scene).can_resume


def test_it_offers_to_resume_what_nobody_took(scene: Scene, owner: Connection) -> None:
    scene.queued("Hello")
    assert stands(scene).starting
    owner.execute("UPDATE public.agent_staff_message SET sent_at = now() - interval '1 minute'")
    assert (stands(scene).starting, stands(scene).can_resume) == (False, True)
    scene.stands("stuck")
    assert stands(scene).can_resume
