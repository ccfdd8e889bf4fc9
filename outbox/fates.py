"""Where an external effect stands, as every page draws it: Queued → Sent → Confirmed, and each other end. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from outbox import handlers
from outbox.models import Message
from outbox.outcomes import PUT_RIGHT
from outbox.transitions import TAKEN_BACK

State = Literal["queued", "sent", "confirmed", "failed", "uncertain", "held"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One station of the line. `at` is None when its time is not known or it has not come."""

    place: Literal["done", "now", "todo"]
    state: str
    icon: str
    word: str
    at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Fate:
    """The state with its word and icon, the line, and a sentence when there is something to know."""

    state: State
    word: str
    icon: str
    steps: tuple[Step, ...]
    note: str = ""
    next_check_at: datetime | None = None

    @property
    def settled(self) -> bool:
        """Return whether the state is final."""
        return self.state in ("confirmed", "failed") or self.word == "Withdrawn"


UNCERTAIN = "The provider did not answer. It is being looked up; please do not ask for it again."
DEAD = "A person has to look at this. Please do not ask for it again."
VOIDED = "The provider confirmed it, and it was voided there later."
CAME_BACK = "The provider confirmed it, and took it back later: the money is with us."
BY_A_PERSON = "A person settled it as refused."
UNREACHED = "The provider could not be reached. Nothing was sent yet."
SLOWED = "The provider was reached, and asked us to wait. Nothing was executed."
SHUT_OUT = "The provider was reached, and does not let us in just now. Nothing was executed."
PUT_OFF = "The provider was reached, and could not take it just now. Nothing was executed."
BEHIND = "An earlier message about the same invoice or payment comes first."


def fate(message: Message) -> Fate:
    """Return where the message's effect stands."""
    make = {
        Message.State.SUCCEEDED: _confirmed,
        Message.State.REJECTED: _refused,
        Message.State.UNCERTAIN: _uncertain,
        Message.State.DEAD: _dead,
        Message.State.CANCELLED: _withdrawn,
    }.get(Message.State(message.state))
    if make:
        return make(message)
    return _sent(message) if message.first_sent_at else _queued(message)


def _done(word: str, at: datetime | None) -> Step:
    return Step(place="done", state="", icon="check", word=word, at=at)


def _now(state: str, icon: str, word: str, at: datetime | None) -> Step:
    return Step(place="now", state=state, icon=icon, word=word, at=at)


def _todo(word: str) -> Step:
    return Step(place="todo", state="", icon="circle-dashed", word=word)


def _gone(message: Message) -> tuple[Step, ...]:
    """Return the stations that lie behind a message that was sent, or was not."""
    queued = _done("Queued", message.created_at)
    return (queued, _done("Sent", message.first_sent_at)) if message.first_sent_at else (queued,)


def _queued(message: Message) -> Fate:
    steps = (_now("queued", "clock", "Queued", message.created_at), _todo("Sent"), _todo("Confirmed"))
    note = _put_back(message)
    return Fate(
        state="queued",
        word="Queued",
        icon="clock",
        steps=steps,
        note=note or (BEHIND if message.blocked else ""),
        next_check_at=_next_try(message, note),
    )


def _put_back(message: Message) -> str:
    """Return why a try came to nothing, when it provably did and another one follows; nothing before the first."""
    error = message.last_error
    if error is None or message.state != Message.State.READY:
        return ""
    if error.startswith("429") or error.endswith("rate_limit"):
        return SLOWED
    if error.startswith(("401", "403")):
        return SHUT_OUT
    return PUT_OFF if error[:3].isdigit() else UNREACHED


def _next_try(message: Message, note: str) -> datetime | None:
    """Return when it is tried next. Where everybody is turned away, that is for the destination to say, not for the message."""
    return message.next_attempt_at if note in (UNREACHED, PUT_OFF) else None


def _sent(message: Message) -> Fate:
    steps = (_done("Queued", message.created_at), _now("sent", "send", "Sent", message.first_sent_at), _todo("Confirmed"))
    note = _put_back(message)
    return Fate(state="sent", word="Sent", icon="send", steps=steps, note=note, next_check_at=_next_try(message, note))


def _confirmed(message: Message) -> Fate:
    if message.provider_status in TAKEN_BACK:
        came = (*_gone(message), _done("Confirmed", message.finished_at), _now("failed", "undo-2", "Came back", None))
        note = VOIDED if message.provider_status == "void" else CAME_BACK
        return Fate(state="failed", word="Came back", icon="undo-2", steps=came, note=note)
    steps = (*_gone(message), _now("confirmed", "check-check", "Confirmed", message.finished_at))
    return Fate(state="confirmed", word="Confirmed", icon="check-check", steps=steps)


def _refused(message: Message) -> Fate:
    why = (message.refusal or "").replace("_", " ")
    steps = (*_gone(message), _now("failed", "ban", f"Refused: {why}" if why else "Refused", message.finished_at))
    return Fate(state="failed", word="Refused", icon="ban", steps=steps, note=_who_refused(message))


def _who_refused(message: Message) -> str:
    if message.refusal == PUT_RIGHT:
        return "A person has put the money right elsewhere."
    said = BY_A_PERSON if message.outcome_source == "person" else "The provider said no."
    return f"{said} {handlers.if_refused(message.topic)}"


def _uncertain(message: Message) -> Fate:
    steps = (*_gone(message), _now("uncertain", "circle-question-mark", "No answer", message.sending_at))
    return Fate(
        state="uncertain",
        word="Uncertain",
        icon="circle-question-mark",
        steps=steps,
        note=UNCERTAIN,
        next_check_at=message.next_attempt_at,
    )


def _dead(message: Message) -> Fate:
    steps = (*_gone(message), _now("held", "hand", "Needs a person", None))
    return Fate(state="held", word="Needs a person", icon="hand", steps=steps, note=DEAD)


def _withdrawn(message: Message) -> Fate:
    steps = (_done("Queued", message.created_at), _now("queued", "x", "Withdrawn", message.finished_at))
    return Fate(state="queued", word="Withdrawn", icon="x", steps=steps, note="Taken back before it was sent. No money moved.")
