"""A staff message as tokens: amounts, months, invoice numbers, quoted texts, and words by their tag."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from sandbox.offline import amounts, periods, vocabulary

SEPARATORS = frozenset({"AND", "THEN", "COMMA"})
END = "END"  # of a sentence
UNKNOWN = "UNKNOWN"
LONGEST = 7  # words of a phrase

QUOTED = re.compile(r"[\"“„«]([^\"”“»]{1,200})[\"”“»]|(?<!\w)'([^']{1,200})'(?!\w)")
INVOICE = re.compile(
    r"(?:invoices?|inv|bill)\b[-\s]*(?:no\.?|number|nr\.?|id)?\s*[-#]?\s*(\d{1,18})\b(?![.,]\d)"
    r"|(?:#\s?|no\.\s?|nr\.?\s?|number\s)(\d{1,18})\b",
    re.IGNORECASE,
)
CUSTOMER = re.compile(r"(?:the\s+)?customer\s*(?:no\.?|number|nr\.?|id)?\s*[:#]?\s*(\d{1,18})\b", re.IGNORECASE)
WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*(?<!'s)|'s\b|\(|\)|&|'", re.UNICODE)
STOP = re.compile(r"[.!?;]+|\n+")
COMMA = re.compile(r"[,:/…]")
DASH = re.compile(r"[-–—]+\s*")
MINUS = re.compile(r"[-–—](?=[^\w\s]?\d|[A-Za-z]{3} ?\d)")
SENTENCE = re.compile(r"(?<=[^\d\s])[.;]|[;\n]|[.!?](?=\s|$)")


@dataclass(frozen=True, kw_only=True)
class Token:
    """One piece of a message: its tag, its text, and its value when it has one."""

    tag: str
    text: str
    value: Any = None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a message is read against: the conversation's customer and day."""

    customer_id: int = 0
    currency: str = ""
    today: date | None = None
    names: tuple[str, ...] = ()  # of the customer


def scan(text: str, *, setting: Setting) -> list[Token]:
    """Return the tokens of a message, nothing left out, each by itself."""
    text = text.replace("’", "'").replace("\u00a0", " ").replace("\u202f", " ").strip()
    return list(_scan(text, setting=setting))


def _scan(text: str, *, setting: Setting) -> Iterator[Token]:
    position = 0
    while position < len(text):
        if text[position] in " \t":
            position += 1
            continue
        token, end = _next(text, position, setting=setting)
        yield token
        position = end


def _next(text: str, at: int, *, setting: Setting) -> tuple[Token, int]:
    """Return the token at a position and where it ends; something is always found."""
    for find in (_quoted, _own_words, _name, _customer, _invoice, _period, _amount, _phrase, _mark):
        if found := find(text, at, setting):
            return found
    end = re.compile(r"\S").match(text, at)
    number = amounts.BARE.match(text, at)
    if number and not re.match(r"\w", text[number.end() : number.end() + 1]):
        return Token(tag="NUMBER", text=number[0]), number.end()
    word = re.compile(r"[\w'%-]+|\S").match(text, at)
    assert end and word
    return Token(tag=UNKNOWN, text=word[0]), word.end()


Found = tuple[Token, int] | None


def _quoted(text: str, at: int, setting: Setting) -> Found:
    found = QUOTED.match(text, at)
    return (Token(tag="TEXT", text=found[0], value=found[1] or found[2]), found.end()) if found else None


def _own_words(text: str, at: int, setting: Setting) -> Found:
    """Take what follows "because", up to the end of the sentence, as somebody's own words."""
    if at and re.match(r"\w", text[at - 1]):
        return None
    for tag, markers in vocabulary.MARKERS.items():
        for marker in markers:
            start = re.compile(rf"{marker}\b\s*[:\-]?\s*", re.IGNORECASE).match(text, at)
            if start and start.end() < len(text):
                stop = SENTENCE.search(text, start.end())
                end = stop.start() if stop else len(text)
                words = text[start.end() : end].strip(" ,\"“”'")
                return (Token(tag=tag, text=text[at:end], value=words), end) if words else None
    return None


def _name(text: str, at: int, setting: Setting) -> Found:
    """Take the customer's own name as the customer; anybody else's stays unknown."""
    if at and re.match(r"\w", text[at - 1]):
        return None
    for name in setting.names:
        if text.startswith(name, at) and not re.match(r"\w", text[at + len(name) : at + len(name) + 1]):
            return Token(tag="THEM", text=name), at + len(name)
    return None


def _customer(text: str, at: int, setting: Setting) -> Found:
    found = CUSTOMER.match(text, at)
    if not found or amounts.scan(text, found.start(1), currency=setting.currency):
        return None
    same = int(found[1]) == setting.customer_id
    return Token(tag="THEM" if same else "STRANGER", text=found[0], value=int(found[1])), found.end()


def _invoice(text: str, at: int, setting: Setting) -> Found:
    found = INVOICE.match(text, at)
    if not found or (at and re.match(r"\w", text[at - 1])):
        return None
    start = found.start(1) if found[1] else found.start(2)
    if amounts.scan(text, start, currency=setting.currency) or periods.scan(text, start, today=setting.today):
        return None
    return Token(tag="INV", text=found[0], value=int(found[1] or found[2])), found.end()


def _period(text: str, at: int, setting: Setting) -> Found:
    if at and re.match(r"\w", text[at - 1]):
        return None
    found = periods.scan(text, at, today=setting.today)
    return (Token(tag="PER", text=text[at : found[1]], value=found[0]), found[1]) if found else None


def _amount(text: str, at: int, setting: Setting) -> Found:
    found = amounts.scan(text, at, currency=setting.currency)
    return (Token(tag="AMT", text=text[at : found[1]], value=found[0]), found[1]) if found else None


def _phrase(text: str, at: int, setting: Setting) -> Found:
    """Return the longest phrase of the vocabulary that starts here."""
    ends: list[int] = []
    position = at
    while len(ends) < LONGEST and (word := WORD.match(text, position)):
        ends.append(word.end())
        gap = re.compile(r" *(?=')| +").match(text, word.end())
        position = gap.end() if gap else word.end()
        if not gap:
            break
    for end in reversed(ends):
        tag = vocabulary.TAGS.get(re.sub(r" +", " ", text[at:end].lower()))
        if tag:
            return Token(tag=tag, text=text[at:end]), end
    return None


def _mark(text: str, at: int, setting: Setting) -> Found:
    if stop := STOP.match(text, at):
        return Token(tag=END, text=stop[0]), stop.end()
    if MINUS.match(text, at) and (at == 0 or text[at - 1] == " "):
        return None
    if dash := DASH.match(text, at):
        return Token(tag="DASH", text=dash[0]), dash.end()
    comma = COMMA.match(text, at)
    return (Token(tag="COMMA", text=comma[0]), comma.end()) if comma else None
