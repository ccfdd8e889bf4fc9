"""Reviewers are told by e-mail and in a chat that a question waits, is late or ended undecided; never twice, never late."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from psycopg_pool import ConnectionPool

from escalations import lifecycle, notifications
from ledger import invariants
from outbox import notices, relay
from outbox.outcomes import Answer
from tests import lending
from tests.escalations.conftest import reviewer, scene
from tests.escalations.scenes import Scene
from tests.outbox import listeners
from tests.outbox.listeners import Listener

__all__ = ["reviewer", "scene"]
Begin = Callable[..., Scene]
Rows = list[tuple[Any, ...]]


@pytest.fixture
def mail(settings: Any) -> Iterator[Listener]:
    """Set up an e-mail address of the desk and a mail server."""
    with listeners.mail() as listener:
        settings.BACKSTOP_NOTIFY_EMAIL = ["desk@example.test"]
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_USE_TLS = "127.0.0.1", listener.port, False
        yield listener


@pytest.fixture
def chat(settings: Any) -> Iterator[Listener]:
    """Set up a chat's webhook."""
    with listeners.chat() as listener:
        settings.BACKSTOP_NOTIFY_CHAT = True
        settings.BACKSTOP_NOTIFY_WEBHOOK = f"http://127.0.0.1:{listener.port}/services/T0/B0/secret"
        yield listener


@pytest.fixture
def pool(database: None) -> Iterator["ConnectionPool[Any]"]:
    with lending.pool("outbox") as found:
        yield found


def deliver(pool: "ConnectionPool[Any]", owner: Any) -> Rows:
    """Let everything that waits come due and deliver it; return each message's topic, state and reason."""
    owner.execute("UPDATE public.outbox_message SET next_attempt_at = now() WHERE state IN ('ready', 'uncertain')")
    owner.execute("UPDATE public.outbox_destination SET parked_until = now() WHERE parked_until IS NOT NULL")
    relay.drain(pool, go_on=lambda: True, wake=lambda: None)
    rows: Rows = owner.execute("SELECT topic, state, last_error FROM public.outbox_message ORDER BY id").fetchall()
    return rows


def test_a_new_question_is_told_in_both_ways_with_its_link(
    scene: Begin, mail: Listener, chat: Listener, pool: Any, owner: Any, keeper: Any, settings: Any
) -> None:
    settings.BACKSTOP_PUBLIC_URL = "https://desk.example.test"
    escalation = scene().approval()
    rows = deliver(pool, owner)
    assert [row[:2] for row in rows] == [("notify.email", "succeeded"), ("notify.chat", "succeeded")]
    assert chat.got == [
        f"E-{escalation} (Held, €4,000.00) waits for a reviewer: https://desk.example.test/escalations/{escalation}/"
    ]
    (letter,) = mail.got
    assert f"/escalations/{escalation}/" in letter
    assert "waits for a reviewer" in letter
    for secret in ("outage", "Outage", "Example Bakery"):  # what staff and customers wrote stays here
        assert secret not in letter + chat.got[0]
    assert [violation for violation in invariants.check(keeper) if violation.name.startswith("outbox.")] == []
    told = owner.execute("SELECT detail ->> 'channel' FROM public.escalations_act WHERE kind = 'notified' ORDER BY id")
    assert told.fetchall() == [("email",), ("chat",)]


def test_an_email_waits_for_a_quick_decision_and_is_skipped_after_it(
    scene: Begin, mail: Listener, pool: Any, owner: Any, web: Any, reviewer: User
) -> None:
    escalation = scene().approval()
    (waits,) = owner.execute("SELECT next_attempt_at - now() > interval '10 s' FROM public.outbox_message").fetchone()
    assert waits
    lifecycle.decide(web, escalation=escalation, kind="reject", text="No.", user=reviewer.id)
    assert deliver(pool, owner) == [("notify.email", "cancelled", None)]
    assert mail.got == []


def test_a_late_question_is_told_once_and_not_while_it_is_snoozed(
    scene: Begin, chat: Listener, pool: Any, owner: Any, agent: Any
) -> None:
    escalation = scene().approval()
    deliver(pool, owner)
    assert notifications.remind(agent) == []
    owner.execute("UPDATE public.escalations_escalation SET due_at = now(), snoozed_until = now() + interval '1 h'")
    assert notifications.remind(agent) == []
    owner.execute("UPDATE public.escalations_escalation SET snoozed_until = NULL")
    assert notifications.remind(agent) == [escalation]
    assert notifications.remind(agent) == []
    deliver(pool, owner)
    assert [line.partition(")")[2].partition(":")[0].strip() for line in chat.got] == [
        "waits for a reviewer",
        "is past its target and still waits for a reviewer",
    ]


def test_two_workers_do_not_tell_of_the_same_late_question(
    scene: Begin, chat: Listener, pool: Any, owner: Any, agent: Any
) -> None:
    escalation = scene().approval()
    owner.execute("UPDATE public.escalations_escalation SET due_at = now()")
    with owner.transaction():
        owner.execute("SELECT FROM public.escalations_escalation FOR UPDATE")  # as a worker has it that tells just now
        assert notifications.remind(agent) == []
    assert notifications.remind(agent) == [escalation]


def test_what_ended_undecided_is_told_as_that(scene: Begin, chat: Listener, pool: Any, owner: Any, agent: Any) -> None:
    escalation = scene().approval()
    with agent.transaction():
        lifecycle.expire(agent, escalation=escalation, text="Nobody decided in time.")
    deliver(pool, owner)
    (line,) = chat.got  # and not that it waits
    assert "nobody decided in time" in line
    assert "reject" not in line


def test_a_server_that_is_away_or_says_later_is_tried_again(
    scene: Begin, mail: Listener, chat: Listener, pool: Any, owner: Any
) -> None:
    mail.answers, chat.answers = [451], [503, 429]
    scene().approval()
    assert {row[1] for row in deliver(pool, owner)} == {"ready"}
    deliver(pool, owner)
    assert {row[1] for row in deliver(pool, owner)} == {"succeeded"}
    assert len(mail.got) == len(chat.got) == 1


def test_a_notice_that_is_refused_asks_nobody(scene: Begin, mail: Listener, chat: Listener, pool: Any, owner: Any) -> None:
    mail.answers, chat.answers = [550], [404]
    scene().approval()
    assert {row[1] for row in deliver(pool, owner)} == {"rejected"}
    assert owner.execute("SELECT count(*) FROM public.escalations_escalation").fetchone() == (1,)


def test_the_webhooks_address_is_in_no_row(scene: Begin, chat: Listener, pool: Any, owner: Any) -> None:
    scene().approval()
    deliver(pool, owner)
    rows = owner.execute(
        "SELECT m::text FROM public.outbox_message m UNION ALL SELECT d::text FROM public.outbox_delivery d"
    ).fetchall()
    assert rows
    assert not [row for row in rows if "secret" in row[0]]


def test_nothing_is_promised_where_nothing_is_set_up(scene: Begin, owner: Any, agent: Any) -> None:
    scene().approval()
    assert notifications.remind(agent) == []
    assert owner.execute("SELECT count(*) FROM public.outbox_message").fetchone() == (0,)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(status=200), "succeeded"),
        (Answer(status=204), "succeeded"),
        (Answer(status=301), "rejected"),
        (Answer(status=400), "rejected"),
        (Answer(status=404), "rejected"),
        (Answer(status=408), "retry"),
        (Answer(status=429, retry_after=7.0), "retry"),
        (Answer(status=500), "retry"),
        (Answer(sent=False, failure="ConnectionRefusedError"), "retry"),
        (Answer(failure="ReadTimeout"), "uncertain"),
    ],
)
def test_what_an_answer_means(answer: Answer, kind: str) -> None:
    outcome = notices.classify(answer)
    assert outcome.kind == kind
    assert outcome.retry_after == answer.retry_after
