"""A scratch schema and the tools that most people would write for it: each opens its own connection and commits by itself."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from langchain_core.tools import BaseTool, tool
from psycopg import sql

CUSTOMER = 42
PREFIX = "story_"
TABLES = """
CREATE TABLE account (customer_id bigint PRIMARY KEY, balance_minor bigint NOT NULL CHECK (balance_minor >= 0));
CREATE TABLE credit_memo (id bigserial PRIMARY KEY, customer_id bigint NOT NULL, period date NOT NULL, amount_minor bigint);
CREATE TABLE deduction (id bigserial PRIMARY KEY, customer_id bigint NOT NULL, amount_minor bigint);
CREATE TABLE refund (id bigserial PRIMARY KEY, customer_id bigint NOT NULL, period date NOT NULL, amount_minor bigint);
"""
COUNTS = "SELECT (SELECT count(*) FROM credit_memo), (SELECT count(*) FROM deduction), (SELECT count(*) FROM refund)"


@contextmanager
def schema(url: str) -> Iterator[str]:
    """Make a schema of its own with a customer in it, return its name, and drop it; the login may create schemas."""
    name = PREFIX + secrets.token_hex(6)
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        try:
            with connect(url, name) as scratch:
                scratch.execute(TABLES)
                scratch.execute("INSERT INTO account VALUES (%s, 12000)", (CUSTOMER,))
            yield name
        finally:
            conn.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def connect(url: str, name: str) -> "psycopg.Connection[Any]":
    """Return a connection to the scratch schema, which every transaction of it ends by itself."""
    if not re.fullmatch(rf"{PREFIX}[0-9a-f]+", name):
        raise ValueError(f"{name!r} is no scratch schema.")
    return psycopg.connect(url, options=f"-c search_path={name}")


def counts(url: str, name: str) -> tuple[int, int, int]:
    """Return how many credit memos, deductions and refunds there are."""
    with connect(url, name) as conn:
        row = conn.execute(COUNTS).fetchone()
    assert row is not None
    return int(row[0]), int(row[1]), int(row[2])


def tools(url: str, name: str) -> list[BaseTool]:
    """Return the three tools, with the names and arguments of ours."""

    def write(statement: str, *values: Any) -> dict[str, Any]:
        with connect(url, name) as conn:  # committed when the block ends
            row = conn.execute(statement, values).fetchone()
        return {"id": row[0]} if row else {}

    @tool("IssueCreditMemo")
    def issue_credit_memo(customer_id: int, billing_period: str, amount_minor: int, currency: str, reason: str) -> dict[str, Any]:
        """Give the customer credit for an invoice."""
        return write(
            "WITH raised AS (UPDATE account SET balance_minor = balance_minor + %s WHERE customer_id = %s)"
            " INSERT INTO credit_memo (customer_id, period, amount_minor) VALUES (%s, %s, %s) RETURNING id",
            *(amount_minor, customer_id, customer_id, billing_period, amount_minor),
        )

    @tool("ApplyCredit")
    def apply_credit(customer_id: int, amount_minor: int, currency: str) -> dict[str, Any]:
        """Deduct credit from the customer's balance."""
        return write(
            "WITH lowered AS (UPDATE account SET balance_minor = balance_minor - %s WHERE customer_id = %s)"
            " INSERT INTO deduction (customer_id, amount_minor) VALUES (%s, %s) RETURNING id",
            *(amount_minor, customer_id, customer_id, amount_minor),
        )

    @tool("QueueRefund")
    def queue_refund(customer_id: int, billing_period: str, amount_minor: int, currency: str, reason: str) -> dict[str, Any]:
        """Refund a paid invoice to the card."""
        return write(
            "INSERT INTO refund (customer_id, period, amount_minor) VALUES (%s, %s, %s) RETURNING id",
            *(customer_id, billing_period, amount_minor),
        )

    return [issue_credit_memo, apply_credit, queue_refund]
