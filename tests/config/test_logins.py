"""Each login may do what config/logins.sql says, and nothing else."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import errors

FORBIDDEN = {
    "web": [
        "INSERT INTO public.billing_invoice (customer_id, billing_period, currency, amount_minor, amount_due_minor)"
        " VALUES (1, '2026-01-01', 'EUR', 1, 1)",
        "UPDATE public.billing_credit_account SET balance_minor = 1",
        "INSERT INTO public.ledger_batch_abort VALUES (gen_random_uuid(), 'a', 0, gen_random_uuid(), '[]')",
        "UPDATE public.outbox_message SET state = 'ready'",
        "UPDATE public.agent_staff_message SET author = 7",
        "UPDATE public.agent_staff_message SET number = 7",
        "DELETE FROM public.agent_staff_message",
        "DELETE FROM public.checkpoints",
        "UPDATE public.escalations_decision SET text = ''",
        "SELECT public.ledger_make_partitions(1)",
        "CREATE TEMPORARY TABLE billing_invoice (id int)",
    ],
    "agent": [
        "UPDATE public.ledger_execution SET tool = 'x'",
        "UPDATE public.agent_staff_message SET text = 'x'",
        "DELETE FROM public.ledger_attempt",
        "UPDATE public.billing_customer SET email = 'x'",
        "UPDATE public.outbox_message SET state = 'ready'",
        "INSERT INTO public.agent_policy (rule, reason, set_by) VALUES ('per_call', 'x', 1)",
        "SELECT password FROM public.auth_user",
        "INSERT INTO public.ledger_row_change (table_name, operation) VALUES ('x', 'INSERT')",
    ],
    "outbox": [
        "INSERT INTO public.ledger_batch_abort VALUES (gen_random_uuid(), 'a', 0, gen_random_uuid(), '[]')",
        "UPDATE public.checkpoints SET metadata = '{}'",
        "INSERT INTO public.billing_invoice (customer_id, billing_period, currency, amount_minor, amount_due_minor)"
        " VALUES (1, '2026-01-01', 'EUR', 1, 1)",
        "SELECT * FROM public.auth_user",
        "UPDATE public.outbox_message SET steps = '[]'",
        "UPDATE public.outbox_message SET dedupe_key = 'x'",
        "UPDATE public.outbox_webhook_event SET payload = '{}'",
    ],
    "keeper": [
        "UPDATE public.billing_invoice SET status = 'paid'",
        "INSERT INTO public.billing_payment (customer_id) VALUES (1)",
        "SELECT password FROM public.auth_user",
    ],
}


def test_it_belongs_to_the_owner(superuser: "psycopg.Connection[Any]") -> None:
    found = superuser.execute(
        "SELECT c.relname, pg_get_userbyid(c.relowner) FROM pg_class c"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S')"
    ).fetchall()
    assert found
    assert {owner for _, owner in found} == {"backstop_owner"}


@pytest.mark.parametrize(("login", "statement"), [(who, what) for who, all_of in FORBIDDEN.items() for what in all_of])
def test_it_refuses_what_a_login_may_not_do(connect: Callable[[str], Any], login: str, statement: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        connect(login).execute(statement)


@pytest.mark.parametrize(
    ("login", "kind", "by", "allowed"),
    [
        ("web", "reject", 8, True),
        ("web", "expire", None, False),
        ("agent", "approve", 8, False),
        ("agent", "close", 8, False),
        ("agent", "expire", None, True),
        ("web", "settle", None, False),
        ("agent", "settle", None, True),
    ],
)
def test_it_lets_people_decide_on_pages_only(
    connect: Callable[[str], Any], owner: Any, login: str, kind: str, by: int | None, allowed: bool
) -> None:
    owner.execute("INSERT INTO public.escalations_escalation (kind, object, payload) VALUES ('asked', 'x', '{}')")
    decision = (
        "INSERT INTO public.escalations_decision (escalation_id, kind, text, waived, decided_by)"
        " SELECT id, %s, '', '[]', %s FROM public.escalations_escalation"
    )
    if allowed:
        assert connect(login).execute(decision, (kind, by)).rowcount == 1
    else:
        with pytest.raises(errors.InsufficientPrivilege):
            connect(login).execute(decision, (kind, by))


MESSAGES = (
    "INSERT INTO public.agent_staff_message (id, thread, number, author, text, state)"
    " SELECT gen_random_uuid(), gen_random_uuid(), 1, 7, state, state FROM unnest(ARRAY['queued', 'taken', 'cancelled']) state"
)


def test_it_lets_a_page_change_a_staff_message_until_the_agent_took_it(owner: Any, web: Any) -> None:
    owner.execute(MESSAGES)
    assert web.execute("UPDATE public.agent_staff_message SET text = 'edited' RETURNING state").fetchall() == [("queued",)]
    with pytest.raises(errors.InsufficientPrivilege):
        web.execute("UPDATE public.agent_staff_message SET state = 'taken'")
    assert web.execute("UPDATE public.agent_staff_message SET state = 'cancelled'").rowcount == 1
    assert web.execute("UPDATE public.agent_staff_message SET state = 'queued'").rowcount == 0
    found = owner.execute("SELECT text, state FROM public.agent_staff_message ORDER BY text").fetchall()
    assert found == [("cancelled", "cancelled"), ("edited", "cancelled"), ("taken", "taken")]


def test_it_lets_a_page_send_no_message_that_is_taken_already(web: Any) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        web.execute(MESSAGES)


def test_it_lets_an_agent_take_what_waits_and_give_nothing_back(owner: Any, agent: Any) -> None:
    owner.execute(MESSAGES)
    with pytest.raises(errors.InsufficientPrivilege):
        agent.execute("UPDATE public.agent_staff_message SET state = 'cancelled'")
    assert agent.execute("UPDATE public.agent_staff_message SET state = 'taken', taken_at = now()").rowcount == 1
    assert agent.execute("UPDATE public.agent_staff_message SET state = 'taken', taken_at = now()").rowcount == 0


def test_it_shows_an_agent_one_customer_only(owner: Any, agent: Any) -> None:
    owner.execute(
        "INSERT INTO public.billing_customer (name, email, currency) VALUES ('A', 'a@x.test', 'EUR'), ('B', 'b@x.test', 'EUR')"
    )
    assert agent.execute("SELECT name FROM public.billing_customer").fetchall() == []
    with agent.transaction():
        agent.execute("SELECT set_config('backstop.subject', '2', true)")
        assert agent.execute("SELECT name FROM public.billing_customer").fetchall() == [("B",)]


@pytest.mark.parametrize(
    "table", ["ledger_attempt", "billing_credit_entry", "escalations_decision", "outbox_delivery", "agent_policy"]
)
def test_it_keeps_evidence_from_the_owner_too(owner: Any, table: str) -> None:
    for statement in (f"DELETE FROM public.{table}", f"TRUNCATE public.{table} CASCADE"):
        with pytest.raises(errors.InsufficientPrivilege):
            owner.execute(statement)
