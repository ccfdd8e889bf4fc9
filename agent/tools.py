"""What a tool is. A domain declares its tools with it and inherits the whole safety net; no LangGraph here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from psycopg import Connection
from pydantic import BaseModel, ConfigDict, Field

from ledger import wiring
from outbox.messages import Cause

Result = dict[str, Any]
A = TypeVar("A", bound="Arguments")
LARGEST_AMOUNT = 1_000_000  # minor units; a tool may set a lower bound, never a higher one


class Arguments(BaseModel):
    """The base of every tool's arguments: strict types, nothing unknown, always the conversation's own customer."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, str_max_length=2000)

    customer_id: int = Field(gt=0, le=2**63 - 1, description="The customer of this conversation.")


@dataclass(frozen=True, kw_only=True)
class Amount:
    """What a call moves, for limits and windows: minor units and an ISO 4217 code."""

    minor: int
    currency: str


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool. `run` gets a connection inside the batch's transaction and its call's savepoint.

    It may execute statements and fetch; it never opens, ends or nests a transaction, talks to anything but the
    connection, or catches a database error. It raises `ledger.refusals.Refusal` for an expected failure.
    """

    name: str
    arguments: type[Arguments]  # its docstring is what the model reads about the tool
    run: Callable[[Connection[Any], Any, Cause], Result]
    proposed: Callable[[Any], str]  # "Create an invoice of €480.00 for November 2026"
    applied: Callable[[Any, Result], str]  # "Created invoice 42 of €480.00"
    amount: Callable[[Any], Amount | None] = lambda arguments: None
    hold_above: int | None = None  # minor units: the default of the per-call limit; None: never held for its amount
    second_above: int | None = None  # minor units: above it two reviewers have to sign; None: one is enough
    effect: tuple[str, ...] = ()  # the arguments that make a call the same again, no free text; empty: every one
    again_after: int | None = None  # hours in which the same effect for a customer is held; None: never
    watch_first: int | None = None  # how many first uses in an installation are held; None: none
    amount_arguments: tuple[str, str] = ("amount_minor", "currency")  # where `amount` finds it: what a back-test reads
    writes: bool = True
    asks_person: bool = False  # must be alone in its batch
    isolation: Literal["read committed", "serializable"] = "read committed"
    independent: str = ""  # why a partial batch is harmless, naming the test that shows it; empty: atomic only

    @property
    def description(self) -> str:
        """Return what the model reads about the tool."""
        return (self.arguments.__doc__ or "").strip()


def registry() -> Mapping[str, Tool]:
    """Return the installed tools by name, in the order of their declaration."""
    return {tool.name: tool for tool in wiring.plugged("BACKSTOP_TOOLS")}
