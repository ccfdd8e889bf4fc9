"""Amounts as people type them: found in a text and turned into minor units, or into a question when they can be read two ways."""

import re
from dataclasses import dataclass
from decimal import Decimal

from billing import money

DOLLARS = frozenset({"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN", "TWD"})
CROWNS = frozenset({"SEK", "NOK", "DKK", "ISK"})
# Codes that are English words too (ALL, TRY, TOP, CUP) are left out: "use ALL 150" is no amount in lek.
CODES = (
    "EUR|USD|GBP|JPY|CHF|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|CAD|AUD|NZD|SGD|HKD|CNY|KRW|INR|THB|MYR|IDR|PHP|VND|TWD"
    "|BRL|MXN|CLP|COP|PEN|ARS|UYU|PYG|ZAR|KES|UGX|RWF|XAF|XOF|XPF|KWD|BHD|OMR|JOD|TND|IQD|LYD|AED|SAR|ILS"
)
SIGNS = {"€": "EUR", "£": "GBP", "₹": "INR", "₩": "KRW", "us$": "USD", "c$": "CAD", "a$": "AUD", "zł": "PLN"}
WORDS = {
    "euro": "EUR", "euros": "EUR", "pound": "GBP", "pounds": "GBP", "quid": "GBP", "yen": "JPY", "rupees": "INR",
    "dollar": "$", "dollars": "$", "bucks": "$", "franc": "CHF", "francs": "CHF", "krona": "kr", "kronor": "kr",
    "krone": "kr", "kroner": "kr", "zloty": "PLN",
}  # fmt: skip
MINOR = ("cent", "cents", "minor units", "pence", "öre", "øre")
SMALL = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
UNITS = {"a": 1, **{word: value for value, word in enumerate(SMALL)}, **TENS}

_SIGN = "|".join(re.escape(sign) for sign in [*sorted(SIGNS, key=len, reverse=True), "$", "¥"])
_WORD = "|".join(sorted(WORDS, key=len, reverse=True))
_GROUPED = r"\d{1,3}(?:[  ']\d{3})+(?:[.,]\d{1,3})?"
_NUMBER = rf"(?:{_GROUPED}|\d+(?:[.,]\d+)*)"
_SPELT = "|".join(sorted([*UNITS, "hundred", "thousand", "and"], key=len, reverse=True))
BEFORE = re.compile(
    rf"(?P<sign>{_SIGN}|(?:{CODES})(?![^\W\d_]))\s?(?P<number>{_NUMBER})(?P<kilo>k\b)?(?!\w)", re.IGNORECASE | re.ASCII
)
AFTER = re.compile(
    rf"(?P<number>{_NUMBER})(?P<kilo>k)?\s?(?P<sign>{_SIGN}|(?:{CODES}|{_WORD}|kr)\b|(?:{'|'.join(MINOR)})\b)(?!\s?\d)",
    re.IGNORECASE,
)
SPELT = re.compile(rf"(?P<spelt>(?:(?:{_SPELT})[\s-]+)+)(?P<sign>(?:{_WORD})\b)", re.IGNORECASE)
BARE = re.compile(rf"(?P<number>{_NUMBER})(?!\w)", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Amount:
    """An amount found in a text. With a problem, it has no value and the problem says why, as a question."""

    minor: int
    currency: str
    problem: str = ""


def scan(text: str, position: int, *, currency: str) -> tuple[Amount, int] | None:
    """Return the amount that starts at the position and where it ends; `currency` is the customer's."""
    for pattern in (BEFORE, AFTER):
        if found := pattern.match(text, position):
            return _amount(found["number"], found["sign"], kilo=bool(found["kilo"]), theirs=currency), found.end()
    if (found := SPELT.match(text, position)) and (value := spelt(found["spelt"])) is not None:
        return _amount(str(value), found["sign"], kilo=False, theirs=currency), found.end()
    return None


def bare(text: str, *, currency: str) -> Amount:
    """Return a number without a currency as an amount in the customer's own."""
    return _amount(text, currency, kilo=False, theirs=currency)


def code_of(sign: str, *, theirs: str) -> str:
    """Return the currency that a sign, code or word means for a customer billed in `theirs`; empty when nobody can know."""
    low = sign.lower()
    low = WORDS.get(low, low)
    if low in ("$", "¥", "kr"):
        family, usual = {"$": (DOLLARS, "USD"), "¥": (("JPY", "CNY"), "JPY"), "kr": (CROWNS, "")}[low]
        return theirs if theirs in family else usual
    return SIGNS.get(low, low.upper())


def spelt(words: str) -> int | None:
    """Return the number that English words spell, such as "four hundred and eighty"; None when they spell none."""
    total, current, seen = 0, 0, False
    for word in re.split(r"[\s-]+", words.lower().strip()):
        if word == "hundred":
            current = max(current, 1) * 100
        elif word == "thousand":
            total, current = total + max(current, 1) * 1000, 0
        elif word != "and":
            current += UNITS[word]
        seen = seen or (word != "and" and word != "a")
    return total + current if seen else None


def _amount(number: str, sign: str, *, kilo: bool, theirs: str) -> Amount:
    if sign.lower() in MINOR:
        return _minor_units(number, theirs=theirs)
    currency = code_of(sign, theirs=theirs)
    if not currency:
        return Amount(minor=0, currency="", problem=f"Which currency do you mean by “{sign}”?")
    plain = _plain(number, decimals=money.exponent(currency))
    if plain is None:
        return Amount(
            minor=0, currency=currency, problem=f"How much is “{number}” in {currency}? It can be read in more than one way."
        )
    minor = (plain * (1000 if kilo else 1)).scaleb(money.exponent(currency))
    if minor != minor.to_integral_value():
        return Amount(minor=0, currency=currency, problem=f"“{number}” has more decimals than {currency} has. How much is meant?")
    return Amount(minor=int(minor), currency=currency)


def _minor_units(number: str, *, theirs: str) -> Amount:
    plain = number.replace(",", "").replace(" ", "")
    if not plain.isdigit():
        return Amount(minor=0, currency=theirs, problem=f"How many minor units is “{number}”?")
    return Amount(minor=int(plain), currency=theirs)


def _plain(number: str, *, decimals: int) -> Decimal | None:
    """Return the value of a number with any of the usual separators, or None when two readings are possible."""
    text = re.sub(r"[\s']", "", number)
    dots, commas = text.count("."), text.count(",")
    if dots and commas:
        point = max(text.rfind("."), text.rfind(","))
        return _with_point(text, point, groups="," if text[point] == "." else ".")
    if dots + commas == 0:
        return Decimal(text)
    mark = "." if dots else ","
    after = len(text) - text.rfind(mark) - 1
    if dots + commas > 1 or (mark == "," and after == 3 and decimals != 3 and not text.startswith("0")):
        return _whole(text, mark)
    return None if after == 3 and (decimals != 3 or mark == ",") else Decimal(text.replace(",", "."))


def _with_point(text: str, point: int, *, groups: str) -> Decimal | None:
    whole = _whole(text[:point], groups)
    return None if whole is None or text[point] in text[:point] else Decimal(f"{whole}.{text[point + 1 :]}")


def _whole(text: str, mark: str) -> Decimal | None:
    head, *groups = text.split(mark)
    return Decimal("".join([head, *groups])) if 1 <= len(head) <= 3 and all(len(group) == 3 for group in groups) else None
