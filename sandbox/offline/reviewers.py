"""What to do with a reviewer's answer: its amounts win over those of the step that failed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sandbox.offline import acts, corrections, periods, planning
from sandbox.offline.clauses import NotUnderstood
from sandbox.offline.facts import Facts
from sandbox.offline.history import History, Round
from sandbox.offline.plans import Call, Impossible, Reference, Unclear
from sandbox.offline.tags import tagged
from sandbox.offline.tokens import END, SEPARATORS, Setting, Token

TOOLS = {
    "USE": "ApplyCredit", "APPLY": "ApplyCredit", "TAKE": "ApplyCredit", "DEDUCT": "ApplyCredit", "CREDIT": "ApplyCredit",
    "CHARGE": "QueueCharge", "DEBIT": "QueueCharge", "CARD": "QueueCharge", "REST": "QueueCharge",
    "REFUND": "QueueRefund", "BACK": "QueueRefund", "MEMO": "IssueCreditMemo", "CREDITING": "IssueCreditMemo",
    "INVOICE": "CreateInvoice", "BILL": "CreateInvoice", "INV": "CreateInvoice",
}  # fmt: skip
NO = re.compile(r"^\W*(?:no\b(?! credit)|don't|do not|stop|leave it|reject|decline|refuse|cancel)", re.IGNORECASE)
YES = re.compile(
    r"^\W*(?:yes|yep|sure|ok|okay|approved|agreed|fine|go ahead|please do|do it|proceed|continue|carry on|retry"
    r"|(?:please )?(?:try|send it) again)\b[\s,.:;!]*",
    re.IGNORECASE,
)
NO_CREDIT = re.compile(r"\b(?:no|without|skip the|not use) (?:any |the |their )?credit\b", re.IGNORECASE)


@dataclass(kw_only=True)
class Said:
    """What an answer says about money and invoices."""

    amounts: dict[str, int]  # minor units by tool
    loose: int | None = None  # an amount that no tool is named for
    reference: Reference | None = None
    no_credit: bool = False

    def __bool__(self) -> bool:
        return bool(self.amounts or self.loose is not None or self.reference or self.no_credit)


def follow(history: History, *, facts: Facts | None, intended: Sequence[Call]) -> list[Call]:
    """Return the calls that the reviewer's answer comes to.

    Raises Unclear when the answer asks for nothing, Impossible when it is a no, NotUnderstood and FactsNeeded as planning does.
    """
    if NO.search(history.turn.text):
        raise Impossible(f"The reviewer answered: “{history.turn.text}”")
    step, answer = _failed_step(history), YES.sub("", history.turn.text).strip()
    said = read(answer, setting=history.setting)
    if step is not None and said and not _asks_for_other_tools(said, step):
        return _changed(step, said, intended=intended)
    try:
        wanted = acts.understand(answer, setting=history.setting)
    except NotUnderstood:
        wanted = []
    if any(acts.is_write(act) for act in wanted):
        return planning.plan(wanted, setting=history.setting, facts=facts).calls
    if step is not None and not answer:
        return list(intended)
    raise Unclear(f"A reviewer answered: “{history.turn.text}” Tell me what I should do now.")


def read(answer: str, *, setting: Setting) -> Said:
    """Return what an answer says, clause by clause; an amount belongs to the tool that its clause names."""
    said = Said(amounts={}, no_credit=bool(NO_CREDIT.search(answer)))
    mentioned: int | None = None
    for clause in _clauses(tagged(answer, setting=setting)):
        tags = {token.tag for token in clause}
        found = [token.value.minor for token in clause if token.tag == "AMT" and not token.value.problem]
        mentioned = found[-1] if found else mentioned
        tool = next((TOOLS[token.tag] for token in clause if token.tag in TOOLS), None)
        if "BALANCE" in tags and "ASKING" in tags and found:
            said.amounts.setdefault("ApplyCredit", found[-1])
        elif tool and (found or ("IT" in tags and mentioned is not None)):
            said.amounts[tool] = found[-1] if found else mentioned or 0
        elif found and tool is None:
            said.loose = found[-1]
        said.reference = _reference(clause, setting=setting) or said.reference
    return said


def _clauses(found: Sequence[Token]) -> list[list[Token]]:
    clauses: list[list[Token]] = [[]]
    for token in found:
        if token.tag in SEPARATORS or token.tag == END:
            clauses.append([])
        else:
            clauses[-1].append(token)
    return [clause for clause in clauses if clause]


def _reference(clause: Sequence[Token], *, setting: Setting) -> Reference | None:
    for token in clause:
        if token.tag == "INV":
            return {"invoice_id": token.value}
        if token.tag == "PER" and len(token.value) == 1:
            day = periods.first_day(token.value[0], today=setting.today)
            return {"billing_period": day.isoformat()} if day else None
    return None


def _failed_step(history: History) -> Round | None:
    """Return the newest step about this request that was not applied."""
    steps = [step for turn in history.since_request for step in turn.writes]
    asked = [step for step in steps if not any(call.tool == "AskHuman" for call in step.calls)]
    return asked[-1] if asked and asked[-1].failed else None


def _asks_for_other_tools(said: Said, step: Round) -> bool:
    return bool(said.amounts) and not set(said.amounts) & {call.tool for call in step.calls}


def _changed(step: Round, said: Said, *, intended: Sequence[Call]) -> list[Call]:
    """Return the step with the reviewer's amounts and invoice."""
    sent = [Call(tool=call.tool, arguments=dict(call.arguments)) for call in step.calls]
    calls = list(intended) if any(not call.arguments for call in sent) and intended else sent
    failed = next((index for index, call in enumerate(step.calls) if call.error and not call.undone), 0)
    if said.loose is not None and not said.amounts and "amount_minor" in calls[failed].arguments:
        calls = _set(calls, failed, said.loose, charge_follows=True)
    for index, call in enumerate(calls):
        if call.tool in said.amounts:
            calls = _set(calls, index, said.amounts[call.tool], charge_follows="QueueCharge" not in said.amounts)
    if said.no_credit:
        calls = _without_credit(calls)
    return [_about(call, said.reference, instead_of=calls[min(failed, len(calls) - 1)]) for call in calls]


def _set(calls: Sequence[Call], index: int, minor: int, *, charge_follows: bool) -> list[Call]:
    call = calls[index]
    before = call.arguments.get("amount_minor", minor)
    changed = [*calls[:index], replace(call, arguments=call.arguments | {"amount_minor": minor}), *calls[index + 1 :]]
    return corrections.follow(changed, index, by=before - minor) if charge_follows else changed


def _without_credit(calls: Sequence[Call]) -> list[Call]:
    for index, call in enumerate(calls):
        if call.tool == "ApplyCredit":
            return _without_credit(corrections.without(calls, index))
    return list(calls)


def _about(call: Call, reference: Reference | None, *, instead_of: Call) -> Call:
    """Return the call about another invoice, when it was about the one that the failed call named."""
    old: dict[str, Any] = corrections.reference(instead_of.arguments)
    if reference is None or not old or corrections.reference(call.arguments) != old:
        return call
    if call.tool == "CreateInvoice" and "billing_period" not in reference:
        return call
    kept = {name: value for name, value in call.arguments.items() if name not in old}
    return replace(call, arguments=kept | reference)
