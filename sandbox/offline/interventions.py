"""What people made of a step, said plainly: rejected, withdrawn, not decided in time, changed, cut, or done by themselves."""

from collections.abc import Sequence
from typing import Any

from billing import money
from sandbox.offline import wording
from sandbox.offline.history import REMOVED, Answered
from sandbox.offline.plans import Call

FOR_THE_MODEL = " Nothing of this step was saved."  # what follows it is an instruction, not for staff


def refused(calls: Sequence[Answered]) -> str:
    """Return why a step did not run: whose no it was, and the reason."""
    word, _, rest = next(call.text for call in calls if call.rejected).partition(":")
    why = rest.partition(FOR_THE_MODEL)[0].strip()
    return f"{'A reviewer rejected this: ' if word == 'REJECTED' else ''}{why} Nothing was changed."


def applied(calls: Sequence[Answered]) -> list[str]:
    """Return what was applied, and what of it is not as it was sent."""
    ran = [call for call in calls if not call.removed]
    by_person = ["A reviewer did this themselves."] if any(call.by_person for call in ran) else []
    changed = [_changed(call) for call in ran if call.changes]
    return [*by_person, wording.applied(ran), *changed, *(_removed(call) for call in calls if call.removed)]


def _changed(call: Answered) -> str:
    said = ", ".join(f"{_shown(call, name, new)} instead of {_shown(call, name, old)}" for name, old, new in call.changes)
    return f"A reviewer changed this before it ran: {said}."


def _removed(call: Answered) -> str:
    what = wording.proposed([Call(tool=call.tool, arguments=call.arguments)]).removeprefix("I will ").rstrip(".")
    why = call.text.removeprefix(REMOVED).removesuffix("Do not send it again.").strip()
    return f"A reviewer removed a part, which was not done: {what or call.tool}. {why}".strip()


def _shown(call: Answered, name: str, value: Any) -> str:
    if name == "amount_minor" and isinstance(value, int) and "currency" in call.arguments:
        return money.format(value, call.arguments["currency"])
    words = name.replace("_", " ")
    return f"no {words}" if value is None else f"{words} “{value}”"
