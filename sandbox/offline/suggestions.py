"""What to say instead: the published examples that come closest to words that were not understood."""

from collections import Counter
from functools import cache

from sandbox.offline import tags, vocabulary
from sandbox.offline.intents import INTENTS, Intent
from sandbox.offline.tokens import END, SEPARATORS, UNKNOWN, Setting

MOST = 3
ENOUGH = 0.5  # of the best score: what is further away is not shown
USUAL = ("invoice_credit_charge", "refund_part", "open_invoices")
TALK = frozenset({"help", "small_talk"})
# Every request has one of these: they say little about what was meant.
COMMON = frozenset({"AMT", "PER", "INV", "THEM", "IT", "ALL", "NUMBER", "FROM", "TO", END, UNKNOWN}) | SEPARATORS


def like(text: str, *, setting: Setting) -> str:
    """Return a sentence with two or three examples of what can be asked, the closest to the text first."""
    examples = "; ".join(f"“{intent.example}”" for intent in closest(text, setting=setting))
    return f"For example, I understand: {examples}. Say “help” for everything that I can do."


def closest(text: str, *, setting: Setting) -> list[Intent]:
    """Return the intents whose examples share the most telling words with the text; the usual ones when none does."""
    said = _telling(text, setting=setting)
    scores = {intent.name: _score(intent, said) for intent in INTENTS if intent.name not in TALK}
    best = max(scores.values())
    near = sorted((name for name, score in scores.items() if score and score >= ENOUGH * best), key=lambda name: -scores[name])
    chosen = near[:MOST] if len(near) > 1 else [*near, *(name for name in USUAL if name not in near)][:MOST]
    return [next(intent for intent in INTENTS if intent.name == name) for name in chosen]


def _telling(text: str, *, setting: Setting) -> frozenset[str]:
    found = tags.tagged(text, setting=setting)
    return frozenset(token.tag for token in found) - COMMON - vocabulary.SILENT


@cache
def _examples() -> dict[str, frozenset[str]]:
    return {intent.name: _telling(intent.example, setting=Setting()) for intent in INTENTS}


@cache
def _shared() -> Counter[str]:
    return Counter(tag for tags in _examples().values() for tag in tags)


def _score(intent: Intent, said: frozenset[str]) -> float:
    """Return how much the example has in common with what was said: rare words count more, unsaid ones against it."""
    own = _examples()[intent.name]
    common = sum(1 / _shared()[tag] for tag in own & said)
    return common / (1 + len(own - said))
