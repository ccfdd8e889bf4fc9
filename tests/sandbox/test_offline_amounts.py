"""Amounts and months as people type them."""

from datetime import date

import pytest

from sandbox.offline import acts, amounts, periods
from sandbox.offline.amounts import Amount
from sandbox.offline.clauses import NotUnderstood
from sandbox.offline.tokens import Setting

TODAY = date(2026, 11, 30)


@pytest.mark.parametrize(
    ("text", "theirs", "minor", "currency"),
    [
        ("€480", "EUR", 48000, "EUR"),
        ("480€", "EUR", 48000, "EUR"),
        ("480 euros", "EUR", 48000, "EUR"),
        ("EUR 1,200.50", "EUR", 120050, "EUR"),
        ("1.200,50 €", "EUR", 120050, "EUR"),
        ("1 200,50 €", "EUR", 120050, "EUR"),
        ("1'200.50 CHF", "CHF", 120050, "CHF"),
        ("€1,200", "EUR", 120000, "EUR"),
        ("€12,5", "EUR", 1250, "EUR"),
        ("€0.99", "EUR", 99, "EUR"),
        ("€1.5k", "EUR", 150000, "EUR"),
        ("£80.05", "GBP", 8005, "GBP"),
        ("80 pounds", "EUR", 8000, "GBP"),
        ("$480", "EUR", 48000, "USD"),
        ("$480", "CAD", 48000, "CAD"),
        ("EUR480", "EUR", 48000, "EUR"),
        ("eur 480", "EUR", 48000, "EUR"),
        ("¥12,000", "JPY", 12000, "JPY"),
        ("12000 yen", "JPY", 12000, "JPY"),
        ("KWD 1.250", "KWD", 1250, "KWD"),
        ("500 kr", "SEK", 50000, "SEK"),
        ("12000 cents", "EUR", 12000, "EUR"),
        ("12000 minor units", "EUR", 12000, "EUR"),
        ("four hundred and eighty euros", "EUR", 48000, "EUR"),
        ("twenty-five dollars", "USD", 2500, "USD"),
        ("two thousand pounds", "GBP", 200000, "GBP"),
        ("1,234,567.89 EUR", "EUR", 123456789, "EUR"),
    ],
)
def test_it_reads_an_amount(text: str, theirs: str, minor: int, currency: str) -> None:
    assert amounts.scan(text, 0, currency=theirs) == (Amount(minor=minor, currency=currency), len(text))


@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        ("€1.200", "EUR"),
        ("¥1.200", "JPY"),
        ("¥12.50", "JPY"),
        ("€80.555", "EUR"),
        ("€1.2.3", "EUR"),
        ("80 kr", "EUR"),
        ("KWD 1,250", "KWD"),
    ],
)
def test_it_asks_about_an_amount_that_can_be_read_two_ways(text: str, theirs: str) -> None:
    found = amounts.scan(text, 0, currency=theirs)
    assert found and "?" in found[0].problem


@pytest.mark.parametrize("text", ["480", "November", "all 150", "a euro", "try 150"])
def test_it_sees_no_amount_without_a_currency(text: str) -> None:
    assert amounts.scan(text, 0, currency="EUR") is None


def months(text: str, *, today: date | None = TODAY, ahead: int = periods.AHEAD) -> list[str]:
    found = periods.scan(text, 0, today=today)
    return [str(periods.first_day(month, today=today, ahead=ahead)) for month in found[0]] if found else []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("November", ["2026-11-01"]),
        ("nov", ["2026-11-01"]),
        ("Sept.", ["2026-09-01"]),
        ("December", ["2026-12-01"]),
        ("January", ["2027-01-01"]),
        ("April", ["2026-04-01"]),
        ("November 2025", ["2025-11-01"]),
        ("November, 2025", ["2025-11-01"]),
        ("Nov '25", ["2025-11-01"]),
        ("2026-11", ["2026-11-01"]),
        ("2026-11-01", ["2026-11-01"]),
        ("11/2026", ["2026-11-01"]),
        ("1 November 2026", ["2026-11-01"]),
        ("15.11.2026", ["2026-11-01"]),
        ("30/11/2026", ["2026-11-01"]),
        ("November 1st, 2026", ["2026-11-01"]),
        ("last month", ["2026-10-01"]),
        ("this month", ["2026-11-01"]),
        ("next month", ["2026-12-01"]),
        ("Q3", ["2026-07-01", "2026-08-01", "2026-09-01"]),
        ("Q1", ["2026-01-01", "2026-02-01", "2026-03-01"]),
        ("q4 2025", ["2025-10-01", "2025-11-01", "2025-12-01"]),
    ],
)
def test_it_reads_a_month(text: str, expected: list[str]) -> None:
    assert months(text) == expected


@pytest.mark.parametrize("text", ["may I", "may we", "480", "2026", "13/2026", "marching"])
def test_it_sees_no_month_where_there_is_none(text: str) -> None:
    assert months(text) == []


def test_it_takes_a_refund_to_be_of_the_past() -> None:
    assert months("December", ahead=0) == ["2025-12-01"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Void October and November", [10, 11]),
        ("Void October to December", [10, 11, 12]),
        ("Void August–October", [8, 9, 10]),
        ("Void from August through October 2026", [8, 9, 10]),
        ("Void October and November 2026", [10, 11]),
    ],
)
def test_it_reads_several_months(text: str, expected: list[int]) -> None:
    [act] = acts.understand(text, setting=Setting(customer_id=42, currency="EUR", today=TODAY))
    assert [(month.year, month.month) for month in act.months] == [(2026, month) for month in expected]


def test_it_does_not_take_a_day_for_an_amount_or_an_amount_for_a_day() -> None:
    [act] = acts.understand("Invoice November €30", setting=Setting(customer_id=42, currency="EUR", today=TODAY))
    [same] = acts.understand("Invoice November 30 EUR", setting=Setting(customer_id=42, currency="EUR", today=TODAY))
    assert act.amounts == same.amounts == (Amount(minor=3000, currency="EUR"),)
    assert act.months == same.months == (date(2026, 11, 1),)


def test_it_asks_for_the_year_when_it_does_not_know_the_day() -> None:
    with pytest.raises(NotUnderstood, match="Which year"):
        acts.understand("Void October", setting=Setting(customer_id=42, currency="EUR"))
    [act] = acts.understand("Void October 2026", setting=Setting(customer_id=42, currency="EUR"))
    assert act.months == (date(2026, 10, 1),)
