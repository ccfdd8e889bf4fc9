"""Where an effect stands, in the words that staff read."""

from datetime import UTC, datetime
from typing import Any

import pytest

from outbox import fates
from outbox.models import Message

AT = datetime(2026, 11, 30, 9, tzinfo=UTC)


def message(**changes: Any) -> Message:
    given = {"state": "ready", "created_at": AT, "next_attempt_at": AT, "last_error": None, "first_sent_at": None}
    return Message(**given | changes)


@pytest.mark.parametrize(
    ("error", "note"),
    [
        ("429 rate_limit", fates.SLOWED),
        ("429", fates.SLOWED),
        ("400 rate_limit", fates.SLOWED),
        ("401 invalid_api_key", fates.SHUT_OUT),
        ("403 refused", fates.SHUT_OUT),
        ("409 lock_timeout", fates.PUT_OFF),
        ("ConnectTimeout", fates.UNREACHED),
        ("NameResolutionError", fates.UNREACHED),
    ],
)
@pytest.mark.parametrize("sent_at", [None, AT], ids=["before its first step", "between its steps"])
def test_it_says_whether_the_provider_was_reached(error: str, note: str, sent_at: datetime | None) -> None:
    found = fates.fate(message(last_error=error, first_sent_at=sent_at))

    at = None if note in (fates.SLOWED, fates.SHUT_OUT) else AT  # they come when the destination is open again
    assert (found.word, found.note, found.next_check_at) == ("Sent" if sent_at else "Queued", note, at)


def test_it_says_nothing_before_the_first_try() -> None:
    found = fates.fate(message())

    assert (found.word, found.note, found.next_check_at) == ("Queued", "", None)


def test_it_says_that_an_earlier_one_comes_first() -> None:
    assert fates.fate(message(blocked=True)).note == fates.BEHIND
    assert fates.fate(message(blocked=True, last_error="429")).note == fates.SLOWED


def test_it_says_nothing_of_an_old_error_while_it_is_tried_again() -> None:
    assert fates.fate(message(state="leased", last_error="429", first_sent_at=AT)).note == ""


@pytest.mark.parametrize(
    ("state", "word", "settled"),
    [
        ("ready", "Queued", False),
        ("accepted", "Sent", False),
        ("uncertain", "Uncertain", False),
        ("dead", "Needs a person", False),
        ("succeeded", "Confirmed", True),
        ("rejected", "Refused", True),
        ("cancelled", "Withdrawn", True),
    ],
)
def test_it_has_a_word_for_each_state(state: str, word: str, settled: bool) -> None:
    sent_at = None if state in ("ready", "cancelled") else AT
    found = fates.fate(message(state=state, first_sent_at=sent_at, finished_at=AT))

    assert (found.word, found.settled) == (word, settled)
    assert [step.place for step in found.steps].count("now") == 1


@pytest.mark.parametrize(
    ("changes", "word", "note"),
    [
        ({"state": "rejected"}, "Refused", "The provider said no. No money moved."),
        ({"state": "rejected", "outcome_source": "person"}, "Refused", f"{fates.BY_A_PERSON} No money moved."),
        (
            {"state": "rejected", "outcome_source": "person", "refusal": "put_right_elsewhere"},
            *("Refused", "A person has put the money right elsewhere."),
        ),
        ({"state": "succeeded", "provider_status": "succeeded"}, "Confirmed", ""),
        ({"state": "succeeded", "provider_status": "failed"}, "Came back", fates.CAME_BACK),
    ],
)
def test_it_says_who_ended_it_and_whether_it_came_back(changes: Any, word: str, note: str) -> None:
    found = fates.fate(message(first_sent_at=AT, finished_at=AT, **changes))

    assert (found.word, found.note, found.settled) == (word, note, True)
