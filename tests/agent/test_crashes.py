"""Kill a worker with SIGKILL anywhere; whoever drives next brings the thread to the same end, with every effect once."""

import pytest

from tests.agent import crashing
from tests.agent.crashing import KILLED
from tests.agent.scripts import says
from tests.agent.takeovers import PERIOD, step
from tests.agent.talks import Talk


def check(talk: Talk, *roles: str) -> None:
    """Compare with a run that nothing interrupted."""
    assert [role for role, _ in talk.texts()] == list(roles)
    assert [role for role, _ in talk.transcript()] == list(roles)
    assert talk.state() == "idle"
    assert talk.rows("SELECT state FROM public.agent_staff_message") == [("taken",)]
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 2
    assert talk.rows("SELECT amount_due_minor FROM public.billing_invoice") == [(36_000,)]
    assert talk.one("SELECT balance_minor FROM public.billing_credit_account") == 0
    assert len({m.id for m in talk.messages()}) == len(roles)


# What a node returned and the checkpoint after it are sent at once, so the other one sleeps where one is surely there.
POINTS = [
    *["run.leased:1", "run.taken:1", "batch.begin:1", "batch.release:1", "batch.committed:1", "run.ended:1", "run.released:1"],
    *[f"checkpoint.put:{n}" for n in range(1, 6)],
    *[f"checkpoint.writes:{n}" for n in range(1, 5)],
    "checkpoint.put_done:1",  # the input's: no node wrote before it
    *[f"checkpoint.writes:{n}:sleep,checkpoint.put_done:{n + 1}" for n in range(1, 5)],
    *[f"checkpoint.put:{n + 1}:sleep,checkpoint.writes_done:{n}" for n in range(1, 5)],
]


@pytest.mark.parametrize("fault", POINTS)
def test_it_ends_the_same_wherever_a_worker_is_killed(talk: Talk, fault: str) -> None:
    talk.say("Invoice November, use the credit")
    script = (step(talk), says("Applied."))
    assert crashing.run(talk.thread, *script, fault=fault) == KILLED
    talk.expire()
    assert talk.drive(*script) == "idle"
    check(talk, "human", "ai", "tool", "tool", "ai")


# Killed as the answers are about to be written: by the worker that found them out, and by the one that read them in the ledger.
UNTOLD = ["checkpoint.put:4:sleep,checkpoint.writes:3", "checkpoint.put:1:sleep,checkpoint.writes:1"]


@pytest.mark.parametrize("faults", [UNTOLD, ["checkpoint.put:4", "checkpoint.put:4"]])
def test_it_counts_a_failed_step_once_however_often_it_is_run_again(talk: Talk, faults: list[str]) -> None:
    talk.say("Invoice November, use the credit")
    script = (step(talk, credit=15_000), step(talk), says("Applied."))
    for fault in faults:
        assert crashing.run(talk.thread, *script, fault=fault) == KILLED
        talk.expire()
    assert talk.drive(*script) == "idle"
    check(talk, "human", "ai", "tool", "tool", "ai", "tool", "tool", "ai")
    assert talk.escalations() == []


QUESTIONS = ["question.asked:1", "question.opened:1", "run.ended:1"]


def held(talk: Talk) -> None:
    talk.web.execute(
        "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by)"
        " VALUES ('per_call', 'CreateInvoice', 'EUR', 1000, 'a test', 1)"
    )
    talk.say("Invoice November, use the credit")


@pytest.mark.parametrize("fault", QUESTIONS)
def test_it_asks_once_wherever_a_worker_is_killed(talk: Talk, fault: str) -> None:
    held(talk)
    script = (step(talk), says("Applied."))
    assert crashing.run(talk.thread, *script, fault=fault) == KILLED
    talk.expire()
    assert talk.drive(*script) == "waiting"
    assert talk.escalations() == [("approval", "open")]
    assert talk.one("SELECT count(*) FROM public.escalations_revision") == 1


PREVIEWS = ["preview.tried:1", "preview.made:1", "preview.kept:1"]
MADE = (
    "SELECT r.number, p.outcome FROM public.escalations_preview p JOIN public.escalations_revision r ON r.id = p.revision_id"
    " ORDER BY p.id"
)


@pytest.mark.parametrize("fault", PREVIEWS)
def test_it_makes_a_preview_once_wherever_a_worker_is_killed(talk: Talk, fault: str) -> None:
    held(talk)
    script = (step(talk), says("Applied."))
    assert crashing.run(talk.thread, *script, fault=fault) == KILLED
    talk.expire()
    assert talk.drive(*script) == "waiting"
    assert talk.rows(MADE) == [(0, "clean")]
    edited(talk)
    assert crashing.run(talk.thread, *script, fault=fault) == KILLED
    talk.expire()
    assert talk.drive(*script) == "waiting"
    assert talk.rows(MADE) == [(0, "clean"), (1, "clean")]
    assert talk.state() == "waiting"
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 0
    talk.sign()
    assert talk.drive(*script) == "idle"


def edited(talk: Talk) -> None:
    """Change the proposal: half the invoice, and the credit as it was."""
    of = {"customer_id": talk.customer, "billing_period": PERIOD, "currency": "EUR"}
    talk.revise(*({"index": n, "arguments": of | {"amount_minor": amount}} for n, amount in enumerate((24_000, 12_000))))


RESUMES = [
    "decision.read:1",
    "decision.resumed:1",
    "checkpoint.writes:1",
    "checkpoint.writes_done:1",
    "checkpoint.put:1",
    "checkpoint.put_done:1",
    "batch.committed:1",
    "run.ended:1",
]


@pytest.mark.parametrize("fault", RESUMES)
def test_it_hands_a_decision_over_until_it_is_taken(talk: Talk, fault: str) -> None:
    held(talk)
    script = (step(talk), says("Applied."))
    assert talk.drive(*script) == "waiting"
    talk.decide("approve")
    assert crashing.run(talk.thread, *script, fault=fault) == KILLED
    talk.expire()
    assert talk.drive(*script) == "idle"
    check(talk, "human", "ai", "tool", "tool", "ai")
    assert talk.escalations() == [("approval", "done")]


@pytest.mark.parametrize(
    "fault", ["decision.read:1", "decision.resumed:1", "checkpoint.put:1", "batch.commit:1", "batch.committed:1"]
)
def test_it_runs_what_was_approved_as_changed_once_wherever_a_worker_is_killed(talk: Talk, fault: str) -> None:
    held(talk)
    script = (step(talk), says("Applied."))
    assert talk.drive(*script) == "waiting"
    edited(talk)
    assert talk.drive(*script) == "waiting"
    talk.sign()
    assert crashing.run(talk.thread, *script, fault=fault) == KILLED
    talk.expire()
    assert talk.drive(*script) == "idle"
    assert talk.rows("SELECT amount_minor, amount_due_minor FROM public.billing_invoice") == [(24_000, 12_000)]
    assert talk.rows("SELECT call_index, generation FROM public.ledger_execution ORDER BY 1") == [(0, 1), (1, 1)]
    assert next(m.text for m in talk.messages() if m.type == "tool").startswith("APPLIED AS CHANGED BY A REVIEWER")
    assert talk.escalations() == [("approval", "done")]
    assert talk.drive(*script) == "idle"  # a bell that comes late
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 2
