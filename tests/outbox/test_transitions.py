"""The whole table: every state with every event."""

import itertools

import pytest

from outbox import transitions
from outbox.models import Message
from outbox.transitions import Event, NotAllowed

S = Message.State
BACK = "back"
NOT_FINAL = (S.READY, S.LEASED, S.ACCEPTED, S.UNCERTAIN, S.DEAD)
EXPECTED = {
    Event.CLAIM: {S.READY: S.LEASED, S.UNCERTAIN: S.LEASED, S.ACCEPTED: S.LEASED},
    Event.SEND: {S.LEASED: S.LEASED},
    Event.ADVANCE: {S.LEASED: S.LEASED},
    Event.SUCCEED: dict.fromkeys(NOT_FINAL, S.SUCCEEDED),
    Event.REJECT: dict.fromkeys(NOT_FINAL, S.REJECTED),
    Event.SUCCEED_LATE: {S.REJECTED: S.SUCCEEDED, S.CANCELLED: S.SUCCEEDED},
    Event.OVERTURN: {S.SUCCEEDED: S.SUCCEEDED},
    Event.ACCEPT: {S.LEASED: S.ACCEPTED},
    Event.NOTE: {S.UNCERTAIN: S.ACCEPTED, S.DEAD: S.ACCEPTED},
    Event.NOT_EXECUTED: {S.LEASED: S.READY},
    Event.UNKNOWN: {S.LEASED: S.UNCERTAIN},
    Event.PUT_BACK: {S.LEASED: BACK},
    Event.EXPIRE_UNSENT: {S.LEASED: BACK},
    Event.EXPIRE_SENT: {S.LEASED: S.UNCERTAIN},
    Event.BURY: {S.LEASED: S.DEAD},
    Event.SKIP: {S.LEASED: S.CANCELLED},
    Event.CANCEL: {S.READY: S.CANCELLED},
    Event.REPLAY_UNSENT: {S.DEAD: S.READY},
    Event.REPLAY_SENT: {S.DEAD: S.UNCERTAIN},
    Event.RESEND: {S.UNCERTAIN: S.UNCERTAIN, S.DEAD: S.UNCERTAIN},
    Event.SETTLE_REJECTED: {S.UNCERTAIN: S.REJECTED, S.DEAD: S.REJECTED},
    Event.COMPENSATE: {S.DEAD: S.REJECTED},
}


@pytest.mark.parametrize(("state", "event"), list(itertools.product(S.values, Event)), ids=str)
def test_it_follows_the_table(state: str, event: Event) -> None:
    expected = EXPECTED[event].get(S(state))

    if expected is None:
        with pytest.raises(NotAllowed):
            transitions.after(state, event, claimed_from="ready")
    elif expected == BACK:
        for origin in transitions.CLAIMABLE:
            assert transitions.after(state, event, claimed_from=origin) == origin
    else:
        assert transitions.after(state, event) == expected


@pytest.mark.parametrize("event", [Event.PUT_BACK, Event.EXPIRE_UNSENT])
@pytest.mark.parametrize("origin", [None, "leased", "succeeded", "dead"])
def test_it_goes_back_only_to_where_a_message_can_be_claimed_from(event: Event, origin: str | None) -> None:
    with pytest.raises(NotAllowed):
        transitions.after("leased", event, claimed_from=origin)


LATE = {(S.REJECTED, Event.SUCCEED_LATE), (S.CANCELLED, Event.SUCCEED_LATE), (S.SUCCEEDED, Event.OVERTURN)}


def test_it_leaves_a_final_state_only_when_the_provider_says_that_money_moved_or_came_back() -> None:
    left = {(state, event) for state, event in itertools.product(transitions.FINAL, Event) if state in transitions.sources(event)}
    assert left == LATE


TOLD = {
    "succeeded": dict.fromkeys(NOT_FINAL, Event.SUCCEED) | dict.fromkeys([S.REJECTED, S.CANCELLED], Event.SUCCEED_LATE),
    "rejected": dict.fromkeys(NOT_FINAL, Event.REJECT) | {S.SUCCEEDED: Event.OVERTURN},
    "accepted": dict.fromkeys([S.UNCERTAIN, S.DEAD], Event.NOTE),
}


@pytest.mark.parametrize(
    ("state", "word"), list(itertools.product(S.values, [*TOLD, "advanced", "uncertain", "dead", "park", "retry"])), ids=str
)
def test_it_knows_what_the_providers_word_is_to_a_message_in_each_state(state: str, word: str) -> None:
    assert transitions.told(state, word) == TOLD.get(word, {}).get(S(state))


def test_it_keeps_later_messages_waiting_behind_everything_that_is_not_final() -> None:
    assert set(transitions.UNFINISHED) == set(S.values) - set(transitions.FINAL)


def test_it_knows_every_state_of_the_table() -> None:
    assert list(transitions.STATES) == Message.State.values
