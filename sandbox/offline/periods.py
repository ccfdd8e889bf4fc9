"""Months as people type them: found in a text, and given a year by the day that the conversation calls today."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

NAMES = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
]  # fmt: skip
MONTHS = {form: number for number, name in enumerate(NAMES, 1) for form in (name, name[:3])} | {"sept": 9}
RELATIVE = {
    "this month": 0, "the current month": 0, "current month": 0, "last month": -1, "the previous month": -1, "previous month": -1,
    "the past month": -1, "next month": 1, "the coming month": 1, "the following month": 1, "the month before last": -2,
}  # fmt: skip
AHEAD = 3  # a month without a year lies at most this far in the future, else it is the past one

_NAME = "|".join(sorted(MONTHS, key=len, reverse=True))
_YEAR = r"20\d\d"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
ISO = re.compile(rf"(?P<year>{_YEAR})[-/](?P<month>0[1-9]|1[0-2])(?:[-/](?:0[1-9]|[12]\d|3[01]))?(?![\w-])")
# A day first: with dots always, with strokes only where it can be no month.
DAY_FIRST = re.compile(rf"(?:\d{{1,2}}\.\s?|(?:1[3-9]|2\d|3[01])[/-])(?P<month>0?[1-9]|1[0-2])[./-]\s?(?P<year>{_YEAR})(?!\w)")
NUMERIC = re.compile(rf"(?P<month>0?[1-9]|1[0-2])[-/.](?P<year>{_YEAR})(?!\w)")
NAMED = re.compile(
    rf"(?:{_DAY}\s+(?:of\s+)?)?(?P<name>{_NAME})\b(?:(?<!\w{{5}})(?<!june)(?<!july)(?<!may)\.(?=\s+(?-i:[a-z\d'€$£])))?"
    rf"(?P<day>\s+{_DAY}(?![\d.,]*\d|\s*[a-z€$£¥]{{1,3}}\b|\s*[€$£¥%]))?(?:,?\s+(?:of\s+)?(?P<year>{_YEAR})\b|\s+'(?P<short>\d\d)\b)?",
    re.IGNORECASE,
)
NEARBY = re.compile("|".join(sorted(RELATIVE, key=len, reverse=True)) + r"\b", re.IGNORECASE)
QUARTER = re.compile(rf"q(?P<quarter>[1-4])(?:\s+(?:of\s+)?(?P<year>{_YEAR}))?\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Month:
    """A month that was named; the year may be missing until the request says what it is for."""

    month: int
    year: int | None = None


Scanned = tuple[tuple[Month, ...], int]


def scan(text: str, position: int, *, today: date | None) -> Scanned | None:
    """Return the months that start at the position and where they end, or None."""
    for pattern, read in READERS:
        found = pattern.match(text, position)
        months = read(found, today) if found else ()
        if found and months and not _is_a_verb(found, text):
            return months, found.end()
    return None


def first_day(month: Month, *, today: date | None, ahead: int = AHEAD) -> date | None:
    """Return the first day of a month, choosing the year that `ahead` allows; None without a year and a today."""
    if month.year:
        return date(month.year, month.month, 1)
    if today is None:
        return None
    latest = _shifted(today, ahead)
    return date(latest.year if month.month <= latest.month else latest.year - 1, month.month, 1)


def between(first: Month, last: Month, *, today: date | None) -> tuple[Month, ...]:
    """Return the months from the first to the last, both included and at most twelve."""
    start, months = first_day(with_years((first, last))[0], today=today), [first]
    year = start.year if start else None
    while months[-1].month != last.month and len(months) < 12:
        month = months[-1].month % 12 + 1
        year = year + (month == 1) if year is not None else None
        months.append(Month(month=month, year=year))
    return (Month(month=first.month, year=start.year if start else None), *months[1:])


def with_years(months: Sequence[Month]) -> tuple[Month, ...]:
    """Give each month without a year the year that a later one of the list names: "October and November 2026"."""
    result: list[Month] = []
    for month in reversed(months):
        after = result[-1] if result else None
        if month.year is None and after is not None and after.year is not None:
            month = Month(month=month.month, year=after.year - (month.month > after.month))
        result.append(month)
    return tuple(reversed(result))


def words(day: date) -> str:
    """Return a billing period as people say it: "November 2026"."""
    return f"{NAMES[day.month - 1].capitalize()} {day.year}"


def _is_a_verb(found: re.Match[str], text: str) -> bool:
    """Say whether "may" or "march" is no month here: "may I", "you may"."""
    if "name" not in found.re.groupindex or found["name"].lower() not in ("may", "march", "mar") or found["year"] or found["day"]:
        return False
    before = re.search(r"(\w+)\s*$", text[: found.start()])
    if re.match(r"\s+(?:i|we|you|they|be)\b", text[found.end() :], re.IGNORECASE):
        return True
    return found["name"] == "may" and not (
        before and before[1].lower() in ("for", "of", "in", "from", "to", "and", "the", "invoice", "void")
    )


def _shifted(day: date, months: int) -> date:
    index = day.year * 12 + day.month - 1 + months
    return date(index // 12, index % 12 + 1, 1)


def _dated(found: re.Match[str], today: date | None) -> tuple[Month, ...]:
    return (Month(month=int(found["month"]), year=int(found["year"])),)


def _named(found: re.Match[str], today: date | None) -> tuple[Month, ...]:
    year = found["year"] or (f"20{found['short']}" if found["short"] else None)
    return (Month(month=MONTHS[found["name"].lower()], year=int(year) if year else None),)


def _nearby(found: re.Match[str], today: date | None) -> tuple[Month, ...]:
    if today is None:
        return ()
    day = _shifted(today, RELATIVE[found[0].lower()])
    return (Month(month=day.month, year=day.year),)


def _quarter(found: re.Match[str], today: date | None) -> tuple[Month, ...]:
    last = int(found["quarter"]) * 3
    end = first_day(Month(month=last), today=today)
    year = int(found["year"]) if found["year"] else end.year if end else None
    return tuple(Month(month=month, year=year) for month in range(last - 2, last + 1))


READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date | None], tuple[Month, ...]]], ...] = (
    (ISO, _dated),
    (DAY_FIRST, _dated),
    (NUMERIC, _dated),
    (NAMED, _named),
    (NEARBY, _nearby),
    (QUARTER, _quarter),
)
