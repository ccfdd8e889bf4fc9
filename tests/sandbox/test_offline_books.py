"""The offline model in the real graph on the real tables: it sends what the tools take and reads what they say."""

from datetime import date
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from agent.llm import Model
from billing import money
from sandbox.offline import periods
from sandbox.offline.model import OfflineModel
from tests.agent.batches import make_customer
from tests.agent.talks import Talk

Connection = psycopg.Connection[Any]


def month(ago: int) -> date:
    """Return the first day of the month so many months ago."""
    today = date.today()
    index = today.year * 12 + today.month - 1 - ago
    return date(index // 12, index % 12 + 1, 1)


THIS, LAST, BEFORE = (periods.words(month(ago)) for ago in (0, 1, 2))


@pytest.fixture
def talk(agent_pool: "ConnectionPool[Connection]", owner: Connection, web: Connection, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """Return a conversation about a customer with €120.00 of credit, a payment of €640.00 last month and an older draft."""
    monkeypatch.setenv("BACKSTOP_OFFLINE_TOKEN_MS", "0")
    made = Talk(pool=agent_pool, owner=owner, web=web, customer=make_customer(owner, credit_minor=12_000))
    [paid] = made.rows(
        "INSERT INTO public.billing_invoice"
        " (customer_id, billing_period, currency, amount_minor, amount_due_minor, status, paid_at)"
        " VALUES (%s, %s, 'EUR', 64000, 64000, 'paid', now()) RETURNING id",
        made.customer,
        month(1),
    )
    owner.execute(
        "INSERT INTO public.billing_payment (customer_id, invoice_id, currency, amount_minor, provider_payment_id)"
        " VALUES (%s, %s, 'EUR', 64000, 'pi_' || gen_random_uuid())",
        (made.customer, paid[0]),
    )
    owner.execute(
        "INSERT INTO public.billing_invoice (customer_id, billing_period, currency, amount_minor, amount_due_minor)"
        " VALUES (%s, %s, 'EUR', 7500, 7500)",
        (made.customer, month(2)),
    )
    return made


def ask(talk: Talk, text: str) -> str:
    """Say something, drive the thread with the offline model, and return its last words."""
    talk.say(text)
    talk.drive(model=Model(OfflineModel(), "offline"))
    return talk.texts()[-1][1]


def counts(talk: Talk) -> dict[str, int]:
    tables = ("invoice", "credit_memo", "credit_entry", "refund")
    return {table: talk.one(f"SELECT count(*) FROM public.billing_{table}") for table in tables} | {
        "messages": talk.one("SELECT count(*) FROM public.outbox_message")
    }


def outcomes(talk: Talk) -> list[str]:
    return [row[0] for row in talk.rows("SELECT outcome FROM public.ledger_attempt_outcome ORDER BY attempt_id")]


def balance(talk: Talk) -> int:
    return int(talk.one("SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s", talk.customer))


def test_it_corrects_the_amount_and_charges_what_is_due(talk: Talk) -> None:
    said = ask(talk, f"Invoice {THIS} at €480, apply their €150 of credit and charge whatever is left")
    assert "Used €120.00 of credit; €360.00 is still due; the balance is now €0.00." in said
    assert "The charge of €360.00 is queued; the card ending in 4242 is charged in a moment." in said
    assert outcomes(talk) == ["rolled_back", "committed"]
    assert balance(talk) == 0
    assert talk.rows("SELECT topic, payload ->> 'amount_minor' FROM public.outbox_message") == [("payment.charge", "36000")]


@pytest.mark.parametrize(
    "flaw", ["stray quote", "wrong customer", "negative amount", "bad date", "unknown tool", "truncated", "same id", "slow"]
)
def test_it_makes_one_mistake_and_everything_happens_once(talk: Talk, flaw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.offline.model.SLOW_MS", 1)
    said = ask(
        talk,
        f"Issue a credit memo of €80 for {LAST}, deduct it from their balance and refund €80 to the card [misbehave: {flaw}]",
    )
    assert "The refund of €80.00 is queued" in said
    assert counts(talk) == {"invoice": 2, "credit_memo": 1, "credit_entry": 3, "refund": 1, "messages": 1}
    assert balance(talk) == 12_000
    assert len(outcomes(talk)) == (1 if flaw == "slow" else 2)


def test_it_is_escalated_when_it_is_stubborn_and_finishes_with_the_reviewers_amounts(talk: Talk) -> None:
    ask(talk, f"Invoice {THIS} for €480, use €150 of credit, charge the rest [misbehave: stubborn]")
    assert list(talk.escalations()) == [("rollbacks", "open")]
    assert outcomes(talk) == ["rolled_back"] * 3
    talk.decide("answer", "The credit balance is €120.00. Use exactly that, and charge €360.00.")
    talk.drive(model=Model(OfflineModel(), "offline"))
    assert "The charge of €360.00 is queued" in talk.texts()[-1][1]
    assert counts(talk)["messages"] == 1


def test_it_is_stopped_when_it_loops(talk: Talk) -> None:
    ask(talk, f"Invoice {THIS} for €480 and charge it [misbehave: loop]")
    assert [kind for kind, _ in talk.escalations()] in (["rollbacks"], ["budget"])
    assert counts(talk)["invoice"] == 2


def test_it_says_so_when_a_reviewer_rejects(talk: Talk) -> None:
    ask(talk, f"Refund {LAST} in full")
    assert list(talk.escalations()) == [("approval", "open")]
    talk.decide("reject", "They got it in cash.")
    talk.drive(model=Model(OfflineModel(), "offline"))
    assert talk.texts()[-1][1].startswith("A reviewer rejected this: They got it in cash.")
    assert counts(talk)["refund"] == 0


def goes_on(talk: Talk) -> str:
    """Drive on with the offline model and return what it says last."""
    talk.drive(model=Model(OfflineModel(), "offline"))
    return talk.texts()[-1][1]


@pytest.mark.parametrize("as_person", [False, True])
def test_it_says_what_a_reviewer_changed_or_did_and_sends_nothing_more(talk: Talk, as_person: bool) -> None:
    ask(talk, f"Refund {LAST} in full")
    [call] = talk.one("SELECT calls FROM public.escalations_revision")
    whole = call["arguments"]["amount_minor"]
    talk.revise({"index": 0, "arguments": call["arguments"] | {"amount_minor": 4_000}}, as_person=as_person)
    talk.drive(model=Model(OfflineModel(), "offline"))
    talk.sign()
    said = goes_on(talk)
    assert f"A reviewer changed this before it ran: €40.00 instead of {money.format(whole, 'EUR')}." in said
    assert "The refund of €40.00 is queued" in said
    assert said.startswith("A reviewer did this themselves.") is as_person
    assert talk.rows("SELECT amount_minor FROM public.billing_refund") == [(4_000,)]
    assert outcomes(talk) == ["committed", "held", "committed"]  # the first one is a look-up


def test_it_follows_an_answer_that_is_given_instead_of_an_approval(talk: Talk) -> None:
    ask(talk, f"Refund {LAST} in full")
    talk.decide("answer", f"Refund €40 for {LAST}.")
    assert "The refund of €40.00 is queued" in goes_on(talk)
    assert talk.rows("SELECT amount_minor FROM public.billing_refund") == [(4_000,)]


def test_it_says_that_staff_took_it_back(talk: Talk) -> None:
    ask(talk, f"Refund {LAST} in full")
    talk.decide("withdraw")
    assert goes_on(talk) == "Support 7 withdrew the request. Nothing was changed."
    assert counts(talk)["refund"] == 0


def test_it_asks_a_person_and_does_what_they_answer(talk: Talk) -> None:
    ask(talk, "Check with a supervisor whether a part of the payment may go back")
    assert list(talk.escalations()) == [("asked", "open")]
    talk.decide("answer", f"Yes. Refund €40 for {LAST}.")
    talk.drive(model=Model(OfflineModel(), "offline"))
    assert talk.one("SELECT amount_minor FROM public.billing_refund") == 4000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"Void {BEFORE} and reissue it at €80", "Created invoice"),
        (f"Charge {BEFORE}", "The charge of €75.00 is queued"),
        (f"Use all available credit on {BEFORE} and charge what is left", "Used €75.00 of credit; €0.00 is still due"),
        (f"Pay {BEFORE} from their credit", "is paid: nothing was due"),
        (f"Credit {LAST} in full because of the outage", "Issued credit memo"),
        (f"Shift €20 of credit from {LAST} to {BEFORE}", "€55.00 is still due"),
        ("Pay out all their credit", "Took €120.00 off the credit; the balance is now €0.00."),
        (f"Reimburse €12.50 of the {LAST} payment", "The refund of €12.50 is queued"),
        (f"Void {LAST}", "is already paid. Nothing was changed."),
        (f"Charge €70 for {BEFORE}", "€75.00 due"),
        ("Invoice December 2031 at $20", "is billed in EUR, so USD cannot be used."),
        ("How much credit is left?", "The credit balance is €120.00."),
        ("What do they owe us?", "€75.00 due, is a draft"),
        (f"Show payments for {LAST}", "of which €640.00 can still be refunded"),
    ],
)
def test_it_does_and_says_what_the_books_allow(talk: Talk, text: str, said: str) -> None:
    heard = ask(talk, text)
    if talk.escalations():  # over a limit: a person decides
        talk.decide("approve")
        talk.drive(model=Model(OfflineModel(), "offline"))
        heard = talk.texts()[-1][1]
    assert said in heard
