"""How books that differ from a message of theirs can be settled: they follow it, or a person has put them right by hand."""

from collections.abc import Mapping
from typing import Any

from billing.repairs import Charge, Refund
from ledger.marks import Mark
from ledger.reconciling import Row
from ledger.refusals import Refusal

DIFFERS = Mark(state="uncertain", icon="git-compare-arrows", word="Status differs")
NONE = "none"


def about(row: Row) -> Mapping[str, Any]:
    """Return what a disagreement says of its message, from a row of its query."""
    return {
        "message": row["message"],
        "subject": row["customer_id"],
        "thread": row["thread"],
        "ai_message_id": row["ai_message_id"],
        "requested_by": row["on_behalf_of"],
        "currency": row["currency"],
    }


def exits(books: Charge | Refund | None) -> tuple[tuple[str, ...], str]:
    """Return the exits, and why the books cannot follow their message if they cannot; None: they have no message."""
    if books is None:
        return ("compensate",), ""
    try:
        way = books.way()
    except Refusal as refusal:
        return ("compensate",), f"The books cannot follow it: {refusal.sentence}"
    return (("compensate",), "") if way == "stand" else (("adopt", "compensate"), "")


def state(row: Row) -> str:
    """Return the message's state in a word."""
    return str(row["state"]) if row["message"] else NONE
