"""The customer's own name in a message: known once a look-up told it, and then as good as "the customer"."""

import re
from dataclasses import replace

from sandbox.offline.clauses import NotUnderstood
from sandbox.offline.history import History

LEGAL_FORMS = frozenset({
    "AB", "AG", "ApS", "AS", "A/S", "ASA", "BV", "B.V.", "Co", "Co.", "Corp", "Corp.", "GmbH", "Inc", "Inc.", "KG", "KK",
    "Limited", "LLC", "LLP", "Ltd", "Ltd.", "NV", "N.V.", "OÜ", "Oy", "Oyj", "plc", "PLC", "Pty", "SA", "S.A.", "SARL", "SAS",
    "SE", "SL", "SpA", "Srl", "SRL",
})  # fmt: skip
SHORTEST = 4  # characters of a name
# Words that no name may silence.
MEANINGFUL = re.compile(
    r"\b(?:no|not|never|nobody|none|nothing|don'?t|do|if|unless|except|without|only|but|half|all|or|instead|when)\b",
    re.IGNORECASE,
)


def with_names(history: History) -> History:
    """Return the conversation, read with the customer's name once a look-up told it."""
    calls = [call for turn in history.turns for step in turn.rounds for call in step.calls]
    told = [str(call.result["name"]) for call in calls if call.result.get("name")]
    return replace(history, setting=replace(history.setting, names=spellings(told[-1]))) if told else history


def may_be_named(error: NotUnderstood, history: History) -> bool:
    """Say whether the unknown words may be the customer's name, which a look-up would tell."""
    looked_up = any(call.tool == "LookUpCustomer" for step in history.turn.rounds for call in step.calls)
    named = bool(error.unknown) and all(word[0].isupper() for word in error.unknown)
    return named and not looked_up and not history.setting.names and not history.turn.reviewer


def spellings(name: str) -> tuple[str, ...]:
    """Return how people write a customer's name, the longest first: with its legal form and without; nothing when it is risky."""
    parts = name.split()
    while len(parts) > 1 and parts[-1].strip(",") in LEGAL_FORMS:
        parts.pop()
    short = " ".join(parts).strip(" ,")
    return () if MEANINGFUL.search(name) or len(short) < SHORTEST else tuple(dict.fromkeys((name, short)))
