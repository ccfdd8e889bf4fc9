"""From acts to calls, in the order that was asked for: one function for each act."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sandbox.offline import patterns, plans
from sandbox.offline.acts import Act
from sandbox.offline.amounts import Amount
from sandbox.offline.facts import Facts
from sandbox.offline.patterns import FACT
from sandbox.offline.plans import REASON, Impossible, Plan, Reference, Unclear, words
from sandbox.offline.tokens import Setting


def plan(acts: Sequence[Act], *, setting: Setting, facts: Facts | None, last: Reference | None = None) -> Plan:
    """Return the calls that the acts come to; raises Unclear, Impossible or FactsNeeded."""
    result = Plan(setting=setting, facts=facts, last=last, acts=acts)
    for position, act in enumerate(acts):
        result.targets.append([])
        if act.name in patterns.READ and act.name != "last_actions":
            result.add("LookUpCustomer")
        elif act.name in PLANNERS:
            PLANNERS[act.name](result, act, position)
    if any(call in result.calls[:index] for index, call in enumerate(result.calls)):
        raise Unclear("That asks for the same thing twice. Should it be done once?")
    return result


def _money(amount: Amount) -> dict[str, Any]:
    return {"amount_minor": amount.minor, "currency": amount.currency}


def _create(plan: Plan, act: Act, position: int) -> None:
    following = plan.acts[position + 1] if act.bare and position + 1 < len(plan.acts) else act
    months: list[Reference] = [{"billing_period": month.isoformat()} for month in act.months or following.months]
    if not months and position and plan.acts[position - 1].name == FACT:
        months = [reference for reference in plan.targets[position - 1] if "billing_period" in reference]
    if act.invoices or not months:
        raise Unclear("For which month should the invoice be?")
    if act.count not in (0, len(months)):
        raise Unclear("For which months should the invoices be? Name each.")
    plan.targets[position] = months
    for month, amount in plans.each(replace(act, amounts=act.amounts or following.amounts), months):
        if amount is None:
            raise Unclear(f"Of how much should {words(month)} be?")
        _create_one(plan, month, amount, text=act.text)


def _create_one(plan: Plan, month: Reference, amount: Amount, *, text: str) -> None:
    described = {"description": text} if text else {}
    plan.add("CreateInvoice", **month, **_money(amount), **described)
    plan.due[plan.key(month)] = amount.minor


def _apply(plan: Plan, act: Act, position: int) -> None:
    reference = plans.target(plan, act, position)
    amount = plans.one_amount(act) or (plan.moved if act.pronoun and plans.named(act) and not act.everything else None)
    if amount is None:
        balance = plan.looked_up().balance - plan.used
        amount = plan.amount(min(balance, plan.due_of(reference)))
        if amount.minor == 0:
            plan.notes.append("There is no credit to use." if balance == 0 else "Nothing is due that credit could pay.")
            return
    plan.add("ApplyCredit", **reference, **_money(amount))
    plan.use_credit(reference, amount.minor)


def _settle(plan: Plan, act: Act, position: int) -> None:
    if any(later.name == "charge" for later in plan.acts[position + 1 :]):
        _apply(plan, act, position)
        return
    reference = plans.target(plan, act, position)
    balance, due = plan.looked_up().balance - plan.used, plan.due_of(reference)
    if balance < due:
        raise Impossible(
            f"{plan.format(due)} is due of {words(reference)} and the credit balance is {plan.format(balance)}, so credit alone"
            " cannot pay it. I can use all of it and charge the rest, if you say so."
        )
    if due:
        plan.add("ApplyCredit", **reference, **_money(plan.amount(due)))
        plan.use_credit(reference, due)
    plan.add("QueueCharge", **reference, **_money(plan.amount(0)))


def _deduct(plan: Plan, act: Act, position: int) -> None:
    if position and plan.acts[position - 1].name in ("create", "reissue"):
        if not any(later.name == "charge" for later in plan.acts[position + 1 :]):
            raise Unclear("Should the credit pay a part of the invoice, or only leave the balance? Say “use” for the invoice.")
        _apply(plan, act, position)
        return
    amount = plans.one_amount(act) or _same_again(plan, act)
    if amount is None and act.everything:
        amount = plan.amount(plan.looked_up().balance - plan.used)
        if amount.minor == 0:
            raise Impossible("The credit balance is zero, so there is nothing to take off.")
    if amount is None:
        raise Unclear("How much should I take off the balance?")
    plan.add("ApplyCredit", **_money(amount))
    plan.used += amount.minor
    plan.moved = amount


def _memo(plan: Plan, act: Act, position: int) -> None:
    moved = _same_again(plan, act)
    for reference, amount in plans.each(act, plans.targets(plan, act, position)):
        chosen = amount or (_whole(plan, reference) if act.everything else moved)
        if chosen is None:
            raise Unclear("How much should the credit memo be?")
        plan.add("IssueCreditMemo", **reference, **_money(chosen), reason=act.reason or REASON)
        plan.moved = chosen


def _whole(plan: Plan, reference: Reference) -> Amount:
    found = plan.invoice(reference)
    return plan.amount(found.amount - found.credited)


def _move(plan: Plan, act: Act, position: int) -> None:
    references, amount = plans.named(act), plans.one_amount(act)
    if amount is None:
        raise Unclear("How much credit should I move?")
    if len(references) != 2 or len(act.months) == 1:
        raise Unclear("From which invoice to which? Name both months, or both numbers.")
    source, target = reversed(references) if act.backwards else references
    plan.targets[position] = [target]
    plan.add("IssueCreditMemo", **source, **_money(amount), reason=act.reason or f"Credit moved to {words(target)}")
    plan.add("ApplyCredit", **target, **_money(amount))


def _void(plan: Plan, act: Act, position: int) -> None:
    for reference in plans.targets(plan, act, position):
        plan.add("VoidInvoice", **reference, reason=act.reason or REASON)


def _reissue(plan: Plan, act: Act, position: int) -> None:
    """Create the invoice again that the act before voided; without such an act, void it first."""
    voided = position > 0 and plan.acts[position - 1].name == "void"
    old = plans.before(plan, position) if voided else plans.targets(plan, act, position)
    if len(old) != 1:
        raise Unclear("Which one of these invoices should I issue again?")
    if not voided:
        plan.add("VoidInvoice", **old[0], reason=act.reason or REASON)
    month = _month(plan, act, old[0])
    plan.targets[position] = [month]
    _create_one(plan, month, plans.one_amount(act) or plan.amount(plan.invoice(old[0]).amount), text=act.text)


def _again(plan: Plan, act: Act, position: int) -> None:
    if position == 0 or plan.acts[position - 1].name != "void":
        raise Unclear("Should I void the invoice that is there first? Then say “void and reissue”.")
    _reissue(plan, act, position)


def _month(plan: Plan, act: Act, reference: Reference) -> Reference:
    if act.months:
        return {"billing_period": act.months[0].isoformat()}
    return reference if "billing_period" in reference else {"billing_period": plan.invoice(reference).period.isoformat()}


def _charge(plan: Plan, act: Act, position: int, *, states: tuple[str, ...] = ()) -> None:
    for reference, amount in plans.each(act, plans.targets(plan, act, position, states=states)):
        plan.add("QueueCharge", **reference, **_money(amount or plan.amount(plan.due_of(reference))))


def _retry(plan: Plan, act: Act, position: int) -> None:
    _charge(plan, act, position, states=("charge_failed",))


def _refund(plan: Plan, act: Act, position: int) -> None:
    moved = _same_again(plan, act)
    if moved is None and not act.amounts and not act.everything and _gives_credit(plan, position):
        raise Unclear("How much should I refund?")
    for reference, amount in plans.each(act, plans.targets(plan, act, position)):
        chosen = amount or moved or _refundable(plan, reference)
        plan.add("QueueRefund", **reference, **_money(chosen), reason=act.reason or REASON)
        plan.moved = chosen


def _same_again(plan: Plan, act: Act) -> Amount | None:
    """Return the amount of the act before, when this one says "it" or names nothing of its own; "all" of what is unclear then."""
    if plan.moved and act.everything and not act.pronoun and not act.amounts and not plans.named(act):
        raise Unclear(f"All of what? Do you mean {plan.format(plan.moved.minor)}? Name the amount.")
    unnamed = (act.name == "refund" and not plans.named(act)) or (act.name == "deduct" and "them" in act.words.lower().split())
    return plan.moved if act.pronoun or unnamed else None


def _gives_credit(plan: Plan, position: int) -> bool:
    return any(earlier.name in ("memo", "deduct") for earlier in plan.acts[:position])


def _refundable(plan: Plan, reference: Reference) -> Amount:
    found = plan.looked_up().payment(reference)
    if found is None:
        raise Impossible(f"I see no payment left to refund for {words(reference)}.")
    if found.under_way:
        raise Impossible(f"A refund of {words(reference)} is under way already.")
    return plan.amount(found.refundable)


def _named(plan: Plan, act: Act, position: int) -> None:
    """Remember what was spoken of, for the "it" that follows."""
    plan.targets[position] = plans.named(act)


def _ask(plan: Plan, act: Act, position: int) -> None:
    question = act.text if len(act.text) >= 3 else act.words
    plan.add("AskHuman", question=question[0].upper() + question[1:])


PLANNERS: dict[str, Callable[[Plan, Act, int], None]] = {
    "create": _create,
    "apply": _apply,
    "settle": _settle,
    "deduct": _deduct,
    "memo": _memo,
    "move": _move,
    "void": _void,
    "reissue": _reissue,
    "again": _again,
    "replace": _reissue,
    "charge": _charge,
    "retry": _retry,
    "refund": _refund,
    "ask": _ask,
    "fact": _named,
}
