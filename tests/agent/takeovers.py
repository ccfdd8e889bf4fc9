"""A conversation that one worker begins and another ends: what both are told, and what must have come of it."""

from typing import Any

from tests.agent.scripts import calls, says
from tests.agent.talks import Talk
from tests.waiting import until

PERIOD = "2025-11-01"
HELD = (
    "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by)"
    " VALUES ('per_call', 'CreateInvoice', 'EUR', 1000, 'a test', 1)"
)


def step(talk: Talk, *, credit: int = 12_000) -> dict[str, Any]:
    of = {"customer_id": talk.customer, "billing_period": PERIOD, "currency": "EUR"}
    return calls(("CreateInvoice", of | {"amount_minor": 48_000}), ("ApplyCredit", of | {"amount_minor": credit}))


def script(talk: Talk) -> tuple[Any, ...]:
    return step(talk), says("Applied.")


def check(talk: Talk) -> None:
    """Compare with a conversation that one worker finished undisturbed."""
    roles = ["human", "ai", "tool", "tool", "ai"]
    assert [role for role, _ in talk.texts()] == roles
    assert [role for role, _ in talk.transcript()] == roles
    assert talk.texts()[-1] == ("ai", "Applied.")
    assert talk.state() == "idle"
    assert talk.one("SELECT count(*) FROM public.ledger_execution") == 2
    assert talk.rows("SELECT amount_due_minor FROM public.billing_invoice") == [(36_000,)]
    assert talk.one("SELECT balance_minor FROM public.billing_credit_account") == 0


def taken_over(talk: Talk, *given: Any) -> str:
    """Let the lease run out (which waits for what the stopped worker has locked) and drive the thread to its end."""
    talk.expire()
    return str(until(lambda: (ended := talk.drive(*given)) != "busy" and ended, seconds=20, what="a takeover"))


def outcomes(talk: Talk, *, fence: int) -> list[str]:
    """Return the outcomes of the attempts that were made with a fence; an open one is `open`."""
    query = (
        "SELECT coalesce(o.outcome, 'open') FROM public.ledger_attempt a"
        " LEFT JOIN public.ledger_attempt_outcome o ON o.attempt_id = a.id WHERE a.fence = %s ORDER BY a.opened_at"
    )
    return [row[0] for row in talk.rows(query, fence)]
