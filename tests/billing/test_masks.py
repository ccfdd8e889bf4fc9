"""What is masked in a preview's digest is what really differs from one run to the next, and nothing else."""

from typing import Any

import pytest

from agent.batch import run_batch
from agent.digests import digest
from billing import handlers
from billing.masks import MASKS
from tests.agent.approved import approved, preview
from tests.agent.batches import Desk

JUNE, JULY, MAY = "2026-06-01", "2026-07-01", "2026-05-01"
TABLES = sorted(name for name in MASKS if name.startswith("billing_"))
TOPICS = sorted(name for name in MASKS if not name.startswith("billing_"))
Column = tuple[str, str]  # of a table or topic


def of(period: str, tool: str, amount: int, **more: Any) -> tuple[str, dict[str, Any]]:
    return (tool, {"billing_period": period, "currency": "EUR", "amount_minor": amount, **more})


BATCHES = {
    "a charge of a new invoice": [of(JUNE, "CreateInvoice", 900), of(JUNE, "ApplyCredit", 100), of(JUNE, "QueueCharge", 800)],
    "a new invoice that credit pays": [of(JULY, "CreateInvoice", 50), of(JULY, "ApplyCredit", 50), of(JULY, "QueueCharge", 0)],
    "a memo on a new invoice": [of(JUNE, "CreateInvoice", 900), of(JUNE, "IssueCreditMemo", 100, reason="Outage")],
    "a refund": [of(MAY, "QueueRefund", 200, reason="Outage")],
    "a void invoice": [
        of(JUNE, "CreateInvoice", 900),
        of(JUNE, "ApplyCredit", 100),
        ("VoidInvoice", {"billing_period": JUNE, "reason": "A mistake"}),
    ],
}


def pay(desk: Desk) -> None:
    """Let May's invoice have been paid by card."""
    desk.owner.execute(
        "WITH i AS (INSERT INTO public.billing_invoice (customer_id, billing_period, currency, amount_minor, amount_due_minor,"
        " status, paid_at) VALUES (%s, '2026-05-01', 'EUR', 900, 900, 'paid', now()) RETURNING customer_id, id)"
        " INSERT INTO public.billing_payment (customer_id, invoice_id, currency, amount_minor, provider_payment_id)"
        " SELECT customer_id, id, 'EUR', 900, 'pi_1' FROM i",
        (desk.customer,),
    )


def differing(one: Any, other: Any) -> set[Column]:
    """Return the columns of tables, and fields of messages, that differ between two previews."""
    found = set()
    for first, second in zip(one.changes, other.changes, strict=True):
        for side in ("before", "after"):
            old, new = first[side] or {}, second[side] or {}
            found |= {(first["table_name"], column) for column in old if old[column] != new[column]}
    for first, second in zip(one.messages, other.messages, strict=True):
        payload = first["payload"]
        found |= {(first["topic"], name) for name in payload if payload[name] != second["payload"][name]}
        found |= {(first["topic"], "aggregate")} if first["aggregate"] != second["aggregate"] else set()
    return found


def test_what_is_masked_is_what_differs_and_nothing_else(desk: Desk) -> None:
    pay(desk)
    seen: set[Column] = set()
    for calls in BATCHES.values():
        one, other = (preview(desk, desk.batch(*calls, ai_message_id="ai-1")) for _ in range(2))
        assert one.outcome == other.outcome == "clean", (one.failure, other.failure)
        assert one.digest == other.digest
        seen |= differing(one, other)
    made = [table for table in TABLES if desk.scalar("SELECT has_table_privilege('backstop_agent', %s, 'INSERT')", table)]
    declared = {(name, column) for name, mask in MASKS.items() for column in (*mask.generated, *mask.refers)}
    declared |= {(table, MASKS[table].key) for table in made}
    declared |= {(topic, "aggregate") for topic in TOPICS if MASKS[topic].aggregate}
    assert seen == declared


@pytest.mark.parametrize("calls", BATCHES.values(), ids=BATCHES.keys())
def test_a_preview_and_its_run_have_one_digest(desk: Desk, calls: Any) -> None:
    pay(desk)
    batch = desk.batch(*calls)
    assert run_batch(desk.pool, batch=approved(batch, preview(desk, batch))).kind == "applied"


def test_every_watched_table_and_every_topic_of_a_tool_is_declared(desk: Desk) -> None:
    watched = desk.owner.execute("SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'record_change'").fetchall()
    assert sorted(name.removeprefix("public.") for (name,) in watched) == TABLES
    assert sorted(handler.topic for handler in handlers.HANDLERS if handler.topic.startswith("payment.")) == TOPICS


@pytest.mark.parametrize("table", TABLES)
def test_every_column_that_is_not_masked_counts(desk: Desk, table: str) -> None:
    mask = MASKS[table]
    rows = desk.owner.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0", (f"public.{table}",)
    )
    row = {column: number for number, (column,) in enumerate(rows.fetchall())}

    def of_insert(**changed: Any) -> bytes:
        new = {"call_index": 0, "table_name": table, "operation": "INSERT", "before": None, "after": row | changed}
        return digest(changes=[new], messages=[], masks=MASKS)

    def of_update(**changed: Any) -> bytes:
        old = {"call_index": 0, "table_name": table, "operation": "UPDATE", "before": row | changed, "after": row | changed}
        return digest(changes=[old], messages=[], masks=MASKS)

    assert {mask.key, *mask.generated, *mask.refers} <= row.keys()
    for column in row:
        same = of_insert(**{column: 999}) == of_insert()
        assert same == (column in (mask.key, *mask.generated)), column
        assert of_update(**{column: 999}) != of_update(), column
