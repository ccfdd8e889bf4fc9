"""A message as acts: what is asked for, clause by clause, with every word accounted for, or else why it is not understood."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache

from sandbox.offline import clauses, patterns, periods, tags, vocabulary
from sandbox.offline.amounts import Amount
from sandbox.offline.clauses import NotUnderstood
from sandbox.offline.periods import Month
from sandbox.offline.tokens import END, SEPARATORS, UNKNOWN, Setting, Token

# Months into the future that a month without a year may lie, by act.
AHEAD = {"create": periods.AHEAD, "reissue": periods.AHEAD, "again": periods.AHEAD, "refund": 0, "memo": 0}
USUALLY_AHEAD = 1
PLEASE = ("please", "pls", "plz", "can we please", "could we please")
COUNTS = {"two": 2, "three": 3, "four": 4}
_PEOPLE = "|".join(map(re.escape, sorted(vocabulary.PEOPLE, key=len, reverse=True)))
ASK = re.compile(
    r"^(?:please\s+|could you\s+|can you\s+|would you\s+|let's\s+|let us\s+)*"
    rf"(?:(?:{'|'.join(map(re.escape, vocabulary.ASKING_VERBS))})\s+"
    rf"(?:{_PEOPLE})\b|(?:{_PEOPLE})\s+(?:should|must|needs to|has to|ought to)\b)"
    r"[\s,:]*(?P<question>.*)$",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Act:
    """One thing that was asked for."""

    name: str
    amounts: tuple[Amount, ...] = ()
    months: tuple[date, ...] = ()
    invoices: tuple[int, ...] = ()
    everything: bool = False
    rest: bool = False
    each: bool = False
    count: int = 0  # "two invoices"
    pronoun: bool = False
    both: bool = False
    latest: bool = False
    described: str = ""  # "refused", "draft" or "open": the invoice is named by its state
    backwards: bool = False  # "to November from October"
    bare: bool = False  # a verb alone: what it is about follows
    reason: str = ""
    text: str = ""
    words: str = field(default="", compare=False)


def understand(message: str, *, setting: Setting) -> list[Act]:
    """Return what the message asks for; raise NotUnderstood when any of its words is not accounted for."""
    if asked := ASK.match(message.strip()):
        return [Act(name="ask", text=asked["question"].strip(), words=message)]
    found_tokens = tags.tagged(message, setting=setting)
    _check_words(found_tokens, setting=setting)
    found = clauses.of_message(found_tokens)
    ahead = min((AHEAD.get(name, USUALLY_AHEAD) for name, _ in found), default=USUALLY_AHEAD)
    ahead = periods.AHEAD if any(AHEAD.get(name) == periods.AHEAD for name, _ in found) else ahead
    acts = _with_reasons([_act(name, clause, setting=setting, ahead=ahead) for name, clause in found])
    _check_acts(acts, message=message, tokens_=found_tokens)
    if any(is_write(act) for act in acts):
        _check_clauses(found)
        return acts
    return [replace(act, name=_asked_by_fact(act)) if act.name == patterns.FACT else act for act in acts]


def is_write(act: Act) -> bool:
    """Say whether the act changes something."""
    return act.name not in patterns.READ | patterns.TALK | {patterns.FACT}


def _asked_by_fact(act: Act) -> str:
    """Return the question that a fact alone comes to: how that charge or invoice stands."""
    return "charge_status" if "charge" in act.words.lower() else "invoice_status"


def _check_clauses(found: Sequence[clauses.Clause]) -> None:
    """Raise NotUnderstood for a question beside an order, as in "charge it, where unpaid", and for "charge them an invoice"."""
    for index, (name, clause) in enumerate(found):
        tags = clauses.tags_of(clause)
        shared = index > 0 and clauses.is_bare(found[index - 1][1])  # "create and charge an invoice"
        if name in patterns.READ and ("SHOW" not in tags or "ASKING" in tags):
            words = " ".join(token.text for token in clause).strip(" ,")
            raise NotUnderstood(f"I cannot tell whether “{words}” is a question or a condition, so I did nothing. Ask it apart.")
        if (
            name == "charge"
            and not shared
            and re.search(r"\ban? (?:invoice|bill)\b", " ".join(token.text for token in clause).lower())
        ):
            raise NotUnderstood("Should I create an invoice, or charge one that is there? I did nothing.")


def _check_words(found: Sequence[Token], *, setting: Setting) -> None:
    for token in found:
        if token.tag == "STRANGER":
            raise NotUnderstood(
                f"This conversation is about customer {setting.customer_id} only, so I did nothing."
                f" Open a conversation about customer {token.value} for that."
            )
        if token.tag == "AMT" and (token.value.problem or not token.value.minor):
            raise NotUnderstood(f"{token.value.problem or 'An amount of zero changes nothing.'} I did nothing.")
    unknown = [token.text for token in found if token.tag in (UNKNOWN, "NUMBER")]
    if unknown:
        listed = ", ".join(f"“{text}”" for text in dict.fromkeys(unknown))
        raise NotUnderstood(f"I did not understand {listed}, so I did nothing.", unknown=unknown)


def _act(name: str, clause: Sequence[Token], *, setting: Setting, ahead: int) -> Act:
    tags, texts = clauses.tags_of(clause), {token.tag: token for token in clause}
    reason = texts["REASON"].value if "REASON" in texts else _noun_of(clause, "CAUSE")
    return Act(
        name=name,
        amounts=tuple(token.value for token in clause if token.tag == "AMT"),
        months=_months(clause, setting=setting, ahead=ahead),
        invoices=tuple(token.value for token in clause if token.tag == "INV"),
        everything="ALL" in tags,
        rest="REST" in tags or (name == "charge" and "BALANCE" in tags),
        each="EACH" in tags or patterns.stands(tags, "COUNT INVOICE AMT"),
        count=COUNTS.get(texts["COUNT"].text.lower(), 0) if "COUNT" in texts else 0,
        pronoun="IT" in tags,
        both="BOTH" in tags,
        latest="LATEST" in tags,
        described=next((tag.lower() for tag in ("REFUSED", "DRAFT", "OPEN") if tag in tags), ""),
        backwards="FROM" in tags and "TO" in tags and tags.index("TO") < tags.index("FROM"),
        bare=clauses.is_bare(clause),
        reason=reason,
        text=texts["TEXT"].value if "TEXT" in texts else _noun_of(clause, "ITEM"),
        words=" ".join(token.text for token in clause),
    )


def _noun_of(clause: Sequence[Token], tag: str) -> str:
    return next((token.text[0].upper() + token.text[1:] for token in clause if token.tag == tag), "")


def _months(clause: Sequence[Token], *, setting: Setting, ahead: int) -> tuple[date, ...]:
    named: list[Month] = []
    counted = [token for token in clause if token.tag not in vocabulary.SILENT]
    for index, token in enumerate(counted):
        if token.tag != "PER":
            continue
        joined = index >= 2 and counted[index - 1].tag in ("UNTIL", "TO") and counted[index - 2].tag == "PER"
        if joined and not any(item.tag == "MOVE" for item in clause):
            named += periods.between(named.pop(), token.value[0], today=setting.today)
        else:
            named += token.value
    days = [periods.first_day(month, today=setting.today, ahead=ahead) for month in periods.with_years(named)]
    if any(day is None for day in days):
        raise NotUnderstood("Which year do you mean? I do not know today's date. I did nothing.")
    return tuple(dict.fromkeys(day for day in days if day))


def _with_reasons(acts: Sequence[Act]) -> list[Act]:
    """Give a reason that stands alone to the acts before it that have none."""
    result: list[Act] = []
    for act in acts:
        if act.name != "because":
            result.append(act)
            continue
        result = [replace(old, reason=act.reason) if is_write(old) and not old.reason else old for old in result]
    return result


def _check_acts(acts: Sequence[Act], *, message: str, tokens_: Sequence[Token]) -> None:
    """Raise NotUnderstood for an order that may be a question, is taken back, or hides in a reason."""
    if not any(is_write(act) for act in acts):
        return
    if any(act.name == "nothing" for act in acts):
        raise NotUnderstood("You asked for something and took it back, so I did nothing.")
    asked = any(token.tag == END and "?" in token.text for token in tokens_)
    polite = any(token.text.lower() in PLEASE for token in tokens_)
    plea = any(token.tag == "PLEA" for token in tokens_)
    if (plea and not polite) or (asked and not plea and not any(token.tag == "REQUEST" for token in tokens_)):
        raise NotUnderstood("Is that a question or a request? I did nothing. Say it without the question mark and I will do it.")
    for act in acts:
        if act.reason and _hides_an_order(act.reason):
            raise NotUnderstood(
                f"I cannot tell whether “{act.reason}” is only a reason or asks for more. I did nothing. Put the reason last."
            )


@cache
def _hides_an_order(reason: str) -> bool:
    """Say whether a part of the reason would be an order of its own."""
    found = tags.tagged(reason, setting=Setting())
    for index, token in enumerate(found[:-1]):
        if token.tag in SEPARATORS:
            name = clauses.recognise(clauses.tags_of(found[index + 1 :]), ())
            if name and name not in patterns.READ | patterns.TALK:
                return True
    return False
