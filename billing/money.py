"""Amounts: integer minor units with an ISO 4217 code, and how people and the provider write them. No floats anywhere."""

import re
from collections.abc import Mapping
from types import MappingProxyType

ZERO_DECIMAL = "BIF CLP DJF GNF ISK JPY KMF KRW MGA PYG RWF UGX VND VUV XAF XOF XPF"
THREE_DECIMAL = "BHD IQD JOD KWD LYD OMR TND"
USUAL_EXPONENT = 2
EXPONENTS: Mapping[str, int] = MappingProxyType(dict.fromkeys(ZERO_DECIMAL.split(), 0) | dict.fromkeys(THREE_DECIMAL.split(), 3))
SYMBOLS: Mapping[str, str] = MappingProxyType({"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩"})
# The provider wants these, which have no decimals, with two, and the two are always 00.
PADDED_BY_PROVIDER = frozenset({"ISK", "UGX"})
DIGITS = re.compile(r"(?:[0-9]{1,15}|[0-9]{1,3}(?:,[0-9]{3}){1,4})(?:\.([0-9]+))?", re.ASCII)


class NotAnAmount(ValueError):
    """The text is not an amount in that currency."""


class NotPayable(ValueError):
    """The provider cannot move this amount."""


def exponent(currency: str) -> int:
    """Return how many decimals the currency has."""
    return EXPONENTS.get(currency, USUAL_EXPONENT)


def format(minor: int, currency: str) -> str:  # noqa: A001  # reads `money.format(…)`
    """Return an amount in minor units as people read it: "€1,480.00", "¥500", "-$5.00", "CHF 12.50"."""
    decimals = exponent(currency)
    whole, rest = divmod(abs(minor), 10**decimals)
    number = f"{whole:,}" + (f".{rest:0{decimals}d}" if decimals else "")
    return ("-" if minor < 0 else "") + SYMBOLS.get(currency, f"{currency} ") + number


def exact(minor: int, currency: str) -> str:
    """Return an amount for whoever must send it back in minor units: "€120.00 (12000 minor units)"."""
    return f"{format(minor, currency)} ({minor} minor units)"


def parse(text: str, currency: str) -> int:
    """Return the minor units of a text such as "€1,480.00", "480" or "480.00 EUR"; raise NotAnAmount.

    A comma groups thousands and nothing else: "480,00" is refused rather than guessed.
    """
    bare = text.strip()
    sign, bare = (-1, bare[1:]) if bare.startswith("-") else (1, bare)
    bare = bare.removeprefix(SYMBOLS.get(currency, currency)).removeprefix(currency).removesuffix(currency).strip(" ")
    found = DIGITS.fullmatch(bare)
    decimals = exponent(currency)
    if not found or len(found[1] or "") > decimals:
        raise NotAnAmount(f"{text!r} is not an amount in {currency}; write it like {format(123456, currency)}.")
    whole = bare.partition(".")[0].replace(",", "")
    return sign * int(whole + (found[1] or "").ljust(decimals, "0"))


def to_provider(minor: int, currency: str) -> tuple[int, str]:
    """Return the amount and lower-case code that the provider's API takes; raise NotPayable when it takes no such amount."""
    if exponent(currency) == 3 and minor % 10:
        raise NotPayable(f"{format(minor, currency)} cannot go through a card: the last decimal of {currency} must be 0.")
    return minor * (100 if currency in PADDED_BY_PROVIDER else 1), currency.lower()


def from_provider(amount: int, code: str) -> tuple[int, str]:
    """Return minor units and ISO code of an amount as the provider's API gives it; raise NotAnAmount for what it cannot be."""
    currency = code.upper()
    whole, rest = divmod(amount, 100) if currency in PADDED_BY_PROVIDER else (amount, 0)
    if rest:
        raise NotAnAmount(f"{amount} is not an amount in {currency} at the provider, which ends in 00.")
    return whole, currency
