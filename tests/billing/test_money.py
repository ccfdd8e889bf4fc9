"""Amounts: the same in both directions, for every exponent."""

import random

import pytest

from billing import money

CURRENCIES = ["EUR", "USD", "GBP", "JPY", "CHF", "KRW", "ISK", "UGX", "KWD", "BHD", "HUF", "TWD", "MGA"]


@pytest.mark.parametrize(
    ("minor", "currency", "text"),
    [
        (48_000, "EUR", "€480.00"),
        (148_000, "EUR", "€1,480.00"),
        (5, "USD", "$0.05"),
        (0, "GBP", "£0.00"),
        (-500, "USD", "-$5.00"),
        (5_000, "JPY", "¥5,000"),
        (5_124, "KWD", "KWD 5.124"),
        (1_250, "CHF", "CHF 12.50"),
        (700, "ISK", "ISK 700"),
        (100_000_000_000, "EUR", "€1,000,000,000.00"),
    ],
)
def test_it_writes_amounts_as_people_read_them(minor: int, currency: str, text: str) -> None:
    assert money.format(minor, currency) == text


@pytest.mark.parametrize("currency", CURRENCIES)
def test_it_reads_back_what_it_writes(currency: str) -> None:
    chance = random.Random(currency)
    for _ in range(300):
        minor = chance.choice([1, -1]) * chance.randrange(10 ** chance.randrange(1, 13))
        assert money.parse(money.format(minor, currency), currency) == minor


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [
        ("480", "EUR", 48_000),
        ("480.5", "EUR", 48_050),
        (" €480.00 ", "EUR", 48_000),
        ("480.00 EUR", "EUR", 48_000),
        ("EUR 480.00", "EUR", 48_000),
        ("1,480", "USD", 148_000),
        ("5000", "JPY", 5_000),
        ("5.124", "KWD", 5_124),
    ],
)
def test_it_reads_amounts(text: str, currency: str, minor: int) -> None:
    assert money.parse(text, currency) == minor


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("", "EUR"),
        ("€", "EUR"),
        ("480,00", "EUR"),
        ("4,80", "EUR"),
        ("1.234,56", "EUR"),
        ("480.001", "EUR"),
        ("5.1", "JPY"),
        ("$480", "EUR"),
        ("1_000", "EUR"),
        ("1e3", "EUR"),
        ("４８０", "EUR"),
        ("--480", "EUR"),
        ("480.", "EUR"),
        (".50", "EUR"),
        ("nan", "EUR"),
        ("4 80", "EUR"),
        ("9" * 16, "EUR"),
    ],
)
def test_it_refuses_what_it_would_have_to_guess(text: str, currency: str) -> None:
    with pytest.raises(money.NotAnAmount, match="is not an amount in"):
        money.parse(text, currency)


@pytest.mark.parametrize(
    ("minor", "currency", "amount"),
    [(48_000, "EUR", 48_000), (500, "JPY", 500), (5, "UGX", 500), (700, "ISK", 70_000), (5_120, "KWD", 5_120), (100, "HUF", 100)],
)
def test_it_sends_and_reads_the_exponent_of_each_currency(minor: int, currency: str, amount: int) -> None:
    assert money.to_provider(minor, currency) == (amount, currency.lower())
    assert money.from_provider(amount, currency.lower()) == (minor, currency)


@pytest.mark.parametrize("currency", CURRENCIES)
def test_it_reads_back_what_it_sends(currency: str) -> None:
    chance = random.Random(currency)
    for _ in range(300):
        minor = chance.randrange(10**8) * (10 if money.exponent(currency) == 3 else 1)
        assert money.from_provider(*money.to_provider(minor, currency)) == (minor, currency)


@pytest.mark.parametrize("currency", ["isk", "ugx"])
def test_it_reads_no_fraction_of_what_has_none(currency: str) -> None:
    with pytest.raises(money.NotAnAmount, match="ends in 00"):
        money.from_provider(750, currency)


ZERO = ["bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf"]


@pytest.mark.parametrize(("codes", "decimals"), [(ZERO, 0), (["isk", "ugx"], 0), (["bhd", "jod", "kwd", "omr", "tnd"], 3)])
def test_it_has_the_providers_table_of_decimals(codes: list[str], decimals: int) -> None:
    assert {code: money.exponent(code.upper()) for code in codes} == dict.fromkeys(codes, decimals)


def test_it_refuses_what_the_provider_cannot_move() -> None:
    with pytest.raises(money.NotPayable, match=r"KWD 5\.124 cannot go through a card"):
        money.to_provider(5_124, "KWD")
