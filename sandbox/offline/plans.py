"""A plan while it is made: the calls so far, and what the books will look like after them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from billing import money
from sandbox.offline import facts as known
from sandbox.offline import periods
from sandbox.offline.acts import Act
from sandbox.offline.amounts import Amount
from sandbox.offline.facts import Facts
from sandbox.offline.tokens import Setting

Reference = dict[str, Any]  # {"invoice_id": 42} or {"billing_period": "2026-11-01"}
REASON = "Asked for by support staff"


@dataclass(frozen=True, kw_only=True)
class Call:
    """One tool call to be made."""

    tool: str
    arguments: dict[str, Any]


class Unclear(Exception):
    """Something is missing that only the staff member can say; the text asks for it."""


class Impossible(Exception):
    """What was asked for does not fit the facts; the text says why."""


class FactsNeeded(Exception):
    """The customer must be looked up first."""


@dataclass(kw_only=True)
class Plan:
    """What one message comes to."""

    setting: Setting
    facts: Facts | None
    acts: Sequence[Act]
    last: Reference | None = None  # what the conversation was about before, for "it"
    calls: list[Call] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    due: dict[str, int] = field(default_factory=dict)  # minor units by invoice
    targets: list[list[Reference]] = field(default_factory=list)  # of each act so far
    moved: Amount | None = None  # the amount of the last memo, deduction or refund
    used: int = 0  # credit used so far, minor units

    def add(self, tool: str, **arguments: Any) -> None:
        """Append a call about the conversation's customer."""
        if not (tool == "LookUpCustomer" and self.calls and self.calls[-1].tool == tool):
            self.calls.append(Call(tool=tool, arguments={"customer_id": self.setting.customer_id, **arguments}))

    def looked_up(self) -> Facts:
        """Return the facts, or ask for them."""
        if self.facts is None:
            raise FactsNeeded
        return self.facts

    def amount(self, minor: int) -> Amount:
        """Return an amount in the customer's currency."""
        return Amount(minor=minor, currency=self.setting.currency)

    def format(self, minor: int) -> str:
        """Return an amount in the customer's currency, in words."""
        return money.format(minor, self.setting.currency)

    def key(self, reference: Reference) -> str:
        """Return one name for an invoice, whether it was named by number or by month."""
        found = self.facts.invoice(reference) if self.facts else None
        return f"{found.period}" if found and found.status != "void" else str(reference.get("billing_period") or reference)

    def invoice(self, reference: Reference) -> known.Invoice:
        """Return what is known of an invoice; raises Impossible when there is none."""
        found = self.looked_up().invoice(reference)
        if found is None:
            raise Impossible(f"I cannot find {words(reference)}.")
        return found

    def due_of(self, reference: Reference) -> int:
        """Return what will be due of an invoice when the next call runs, in minor units."""
        if self.key(reference) not in self.due:
            found = self.invoice(reference)
            if found.status not in known.CHARGEABLE:
                how = {"charge_queued": "has a charge under way"}.get(found.status, f"is {found.status} already")
                raise Impossible(f"Invoice {found.id} {how}.")
            self.due[self.key(reference)] = found.due
        return self.due[self.key(reference)]

    def use_credit(self, reference: Reference, minor: int) -> None:
        """Remember that a call uses credit for an invoice, which lowers what is due."""
        self.used += minor
        if self.key(reference) in self.due or self.facts is not None:
            self.due[self.key(reference)] = max(self.due_of(reference) - minor, 0)


def words(reference: Reference) -> str:
    """Return what a reference names, for a sentence."""
    if "invoice_id" in reference:
        return f"invoice {reference['invoice_id']}"
    return f"the invoice of {periods.words(date.fromisoformat(reference['billing_period']))}"


def named(act: Act) -> list[Reference]:
    """Return the invoices that the act itself names."""
    by_number: list[Reference] = [{"invoice_id": number} for number in act.invoices]
    return by_number + [{"billing_period": month.isoformat()} for month in act.months]


def targets(plan: Plan, act: Act, position: int, *, states: tuple[str, ...] = ()) -> list[Reference]:
    """Return the invoices that an act is about, and remember them for the acts after it."""
    found = (
        named(act)
        or _described(plan, act)
        or _latest(plan, act)
        or _before_alike(plan, act, position)
        or before(plan, position)
        or _after(plan, position)
        or ([plan.last] if act.pronoun and plan.last else [])
        or (_in_state(plan, act, states) if states else [])
    )
    if not found:
        raise Unclear("Which invoice do you mean? Name its month or its number.")
    plan.targets[position] = found
    return found


def target(plan: Plan, act: Act, position: int) -> Reference:
    """Return the one invoice that an act is about."""
    found = targets(plan, act, position)
    if len(found) > 1:
        raise Unclear("Which one of these invoices do you mean? Name one month or one number.")
    return found[0]


def _before_alike(plan: Plan, act: Act, position: int) -> list[Reference]:
    """Return what the acts of one kind just before were about, when there were several; it must be said that all are meant."""
    found: list[Reference] = []
    for index in reversed(range(position)):
        if plan.acts[index].name != plan.acts[position - 1].name:
            break
        found += [reference for reference in plan.targets[index] if reference not in found]
    if len(found) > 1 and not (act.both or act.everything):
        raise Unclear("Which one of these invoices do you mean? Name one month or one number, or say “both”.")
    return found[::-1] if len(found) > 1 else []


def _latest(plan: Plan, act: Act) -> list[Reference]:
    """Return the newest invoice, or of a refund the newest payment's."""
    if not act.latest:
        return []
    facts = plan.looked_up()
    if act.name == "refund":
        known_ = [(payment.period, payment.invoice_id) for payment in facts.payments]
    else:
        known_ = [(invoice.period, invoice.id) for invoice in facts.invoices if invoice.status != "void"]
    return [{"invoice_id": max(known_)[1]}] if known_ else []


def before(plan: Plan, position: int) -> list[Reference]:
    """Return what the nearest act before was about."""
    return next((found for found in reversed(plan.targets[:position]) if found), [])


def _after(plan: Plan, position: int) -> list[Reference]:
    return next((named(act) for act in plan.acts[position + 1 :] if named(act)), [])


def _described(plan: Plan, act: Act) -> list[Reference]:
    states = {"refused": ("charge_failed",), "draft": ("draft",), "open": known.CHARGEABLE}.get(act.described)
    return _in_state(plan, act, states) if states else []


def _in_state(plan: Plan, act: Act, states: tuple[str, ...]) -> list[Reference]:
    """Return the invoice in one of these states, if there is exactly one or all are meant."""
    found = plan.looked_up().in_state(*states)
    if not found:
        raise Impossible(f"There is no invoice that is {' or '.join(STATES[state] for state in states)}.")
    if len(found) > 1 and not (act.everything or "invoices" in act.words.lower()):
        listed = ", ".join(f"{item.id} ({periods.words(item.period)}, {plan.format(item.due)} due)" for item in found)
        raise Unclear(f"Which invoice do you mean? There are {len(found)}: {listed}.")
    return [{"invoice_id": item.id} for item in found]


STATES = {"charge_failed": "refused", "draft": "a draft"}


def one_amount(act: Act) -> Amount | None:
    """Return the act's amount, or None; two amounts for one thing are unclear."""
    if len(act.amounts) > 1:
        raise Unclear("Which of these amounts do you mean? Name one amount for each thing to do.")
    return act.amounts[0] if act.amounts else None


def each(act: Act, references: Sequence[Reference]) -> Iterator[tuple[Reference, Amount | None]]:
    """Pair invoices with amounts: one for each, or one that is said to be for each."""
    if len(act.amounts) == len(references):
        yield from zip(references, act.amounts, strict=True)
        return
    if len(act.amounts) > 1 or (act.amounts and len(references) > 1 and not act.each):
        raise Unclear("Is the amount for each of them, or for all together? Say “each”, or name one amount for each.")
    for reference in references:
        yield reference, act.amounts[0] if act.amounts else None
