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
    Event.ACCEPT: {S.LEASED: S.ACCEPTED},
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


def test_it_never_leaves_a_final_state() -> None:
    for state, event in itertools.product(transitions.FINAL, Event):
        assert state not in transitions.sources(event)


def test_it_keeps_later_messages_waiting_behind_everything_that_is_not_final() -> None:
    assert set(transitions.UNFINISHED) == set(S.values) - set(transitions.FINAL)
