"""What to answer to a conversation: plan a request, read what became of the last step, correct it, or say honestly why not."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sandbox.offline import (
    acts,
    clauses,
    corrections,
    interventions,
    memory,
    misbehaviour,
    names,
    patterns,
    planning,
    readings,
    reviewers,
    suggestions,
    tags,
    wording,
)
from sandbox.offline.acts import Act
from sandbox.offline.clauses import NotUnderstood
from sandbox.offline.corrections import Context
from sandbox.offline.facts import Facts
from sandbox.offline.history import History, Round
from sandbox.offline.misbehaviour import Step
from sandbox.offline.plans import Call, FactsNeeded, Impossible, Unclear

LOOKING = "I will look at the account first."


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the model says, and the calls that go with it."""

    text: str
    step: Step


def decide(history: History, *, tools: Collection[str]) -> Reply:
    """Return the answer to the last message; `tools` are the names of the tools that were offered."""
    history = names.with_names(history)
    try:
        text, calls = _after(history) if history.turn.rounds else _at_first(history)
    except FactsNeeded:
        text, calls = LOOKING, [_look_up(history)]
    except NotUnderstood as error:
        named = names.may_be_named(error, history)
        text, calls = (LOOKING, [_look_up(history)]) if named else (_not_understood(error, history), [])
    except Unclear as error:
        text, calls = f"{error} I did nothing yet.", []
    except Impossible as error:
        text, calls = f"{error} Nothing was changed.", []
    missing = {call.tool for call in calls} - set(tools)
    if missing:
        text, calls = f"I have no tool {', '.join(sorted(missing))} here, so I cannot do that. Nothing was changed.", []
    step = misbehaviour.spoil(calls, turn=history.request, reviewed=history.turn.reviewer)
    if "stubborn" in history.request.flaws and step.calls != calls:
        text = wording.proposed(step.calls)  # what it says is as wrong as what it sends
    return Reply(text=text, step=step)


def _not_understood(error: NotUnderstood, history: History) -> str:
    return f"{error} {suggestions.like(history.turn.text, setting=history.setting)}"


Answer = tuple[str, list[Call]]


def _at_first(history: History) -> Answer:
    """Answer a person who was not answered yet."""
    calls, notes = _intended(history, facts=None)
    if calls:
        reads = all(call.tool == "LookUpCustomer" for call in calls)
        return (LOOKING if reads else _sentence(notes, wording.proposed(calls))), calls
    return _sentence(notes, _without_calls(history)), []


def _after(history: History) -> Answer:
    """Answer after a step: go on, report, or correct."""
    step = history.turn.rounds[-1]
    if any(call.rejected for call in step.calls):
        return interventions.refused(step.calls), []
    if step.failed:
        return _corrected(history, step)
    if not step.only_reads:
        return _report(history, step), []
    if history.turn.writes:
        return _corrected_with_facts(history, history.turn.writes[-1])
    calls, notes = _intended(history, facts=memory.facts(history))
    if any(call.tool != "LookUpCustomer" for call in calls):
        return _sentence(notes, wording.proposed(calls)), calls
    return _sentence(notes, _report(history, step)), []


def _intended(history: History, *, facts: Facts | None) -> tuple[list[Call], list[str]]:
    """Return the calls that the turn asks for, as if nothing had been tried."""
    if history.turn.reviewer:
        asked, _ = _of_request(history, facts=facts)
        return reviewers.follow(history, facts=facts, intended=asked), []
    found = planning.plan(_acts(history), setting=history.setting, facts=facts, last=memory.last(history))
    return found.calls, found.notes


def _of_request(history: History, *, facts: Facts | None) -> tuple[list[Call], list[str]]:
    """Return what the staff member's request alone comes to; nothing when that cannot be said any more."""
    end = max(index for index, turn in enumerate(history.turns) if turn is history.request)
    try:
        return _intended(replace(history, turns=history.turns[: end + 1]), facts=facts or memory.facts(history))
    except (NotUnderstood, Unclear, Impossible, FactsNeeded):
        return [], []


def _acts(history: History) -> list[Act]:
    """Return what the staff member asks for; a few words complete the question that was asked back."""
    return acts.understand(_text(history), setting=history.setting)


def _text(history: History) -> str:
    """Return the message, with the unclear ones before it that it completes."""
    text, before = history.turn.text, replace(history, turns=history.turns[:-1])
    fragment = clauses.is_fragment(tags.tagged(text, setting=history.setting))
    if not fragment or not before.turns or before.turn.reviewer or not _is_unclear(before):
        return text
    joined = [f"{_text(before).rstrip('.!')}{joint}{text}" for joint in (", ", " for ")]
    return next((whole for whole in joined if _is_understood(whole, history)), text)


def _is_unclear(history: History) -> bool:
    """Say whether the turn was answered with a question."""
    if history.turn.writes:
        return False
    try:
        _intended(history, facts=memory.facts(history))
    except Unclear:
        return True
    except (NotUnderstood, Impossible, FactsNeeded):
        return False
    return False


def _is_understood(text: str, history: History) -> bool:
    try:
        return bool(acts.understand(text, setting=history.setting))
    except NotUnderstood:
        return False


def _without_calls(history: History) -> str:
    """Answer what needs no tool."""
    asked = _acts(history)
    wanted = [act.name for act in asked]
    if "last_actions" in wanted:
        return readings.last_actions(history.turns[:-1])
    if "help" in wanted or not wanted:
        return wording.listing()
    if "nothing" in wanted:
        return wording.NOTHING
    return wording.COURTESY if any(_greets(act, history) for act in asked) else wording.THANKED if "courtesy" in wanted else ""


def _greets(act: Act, history: History) -> bool:
    return any(token.tag == "HELLO" for token in tags.tagged(act.words, setting=history.setting))


def _report(history: History, step: Round) -> str:
    """Say what the results say."""
    told = interventions.applied([call for call in step.calls if call.tool != "LookUpCustomer"])
    facts = memory.facts(history)
    asked = [] if history.turn.reviewer else _acts(history)
    for act in asked:
        if act.name == "last_actions":
            told.append(readings.last_actions(history.turns[:-1]))
        elif act.name in patterns.READ and facts:
            told.append(readings.answer(act, facts=facts, last=memory.last(history)))
    return _sentence(told) or "I looked at the account."


def _corrected(history: History, step: Round) -> Answer:
    """Correct a failed step from its errors, else look the customer up."""
    if "loop" in history.request.flaws:
        return "I will try that again.", [Call(tool=call.tool, arguments=dict(call.arguments)) for call in step.calls]
    if _is_hopeless(history):
        raise Impossible(f"I could not do that. {_because(step)}")
    calls = corrections.corrected(_context(history, step))
    if calls is None:
        if step.only_reads or memory.facts(history):
            return _corrected_with_facts(history, step)
        return f"{_because(step)} {LOOKING}", [_look_up(history)]
    return _sentence([_because(step), corrections.changed(step, calls)]), calls


def _corrected_with_facts(history: History, step: Round) -> Answer:
    """Correct a failed step from what a look-up told, or say why it cannot be done."""
    facts = memory.facts(history)
    calls = corrections.without_existing(_context(history, step), facts) if facts else None
    calls = calls or _intended(history, facts=facts)[0]
    if not calls or _same(calls, step):
        raise Impossible(f"I could not do that. {_because(step)}")
    return _sentence([_because(step), corrections.changed(step, calls)]), calls


def _is_hopeless(history: History) -> bool:
    """Say whether the same step failed in the same way twice running, corrected or not."""
    tried = history.turn.writes[-2:]
    return len(tried) == 2 and tried[0] == tried[1]


def _same(calls: Sequence[Call], step: Round) -> bool:
    return [(call.tool, call.arguments) for call in calls] == [(call.tool, call.arguments) for call in step.calls]


def _context(history: History, step: Round) -> Context:
    spoken = " ".join(turn.text for turn in history.since_request)
    found = tags.tagged(spoken, setting=history.setting)
    intended, _ = _of_request(history, facts=memory.facts(history))
    return Context(
        setting=history.setting,
        step=step,
        intended=intended,
        stated=frozenset(token.value.minor for token in found if token.tag == "AMT"),
    )


def _because(step: Round) -> str:
    return corrections.told(corrections.failure(step))


def _look_up(history: History) -> Call:
    return Call(tool="LookUpCustomer", arguments={"customer_id": history.setting.customer_id})


def _sentence(*parts: str | Sequence[str]) -> str:
    flat = [text for part in parts for text in ([part] if isinstance(part, str) else part)]
    return " ".join(text.strip() for text in flat if text.strip())
