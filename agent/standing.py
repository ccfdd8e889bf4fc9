"""Where a conversation stands, in words for the line above the composer. Pure: rows and `now` in, words out."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from agent import waits
from agent.conversations import Rows
from agent.models import StaffMessage, Thread
from escalations.models import Escalation
from ledger.spans import clock, moment

PATIENCE = timedelta(seconds=10)  # nobody took a message or a decision for so long: offer *Resume*


@dataclass(frozen=True, kw_only=True)
class Standing:
    """`state` is the pulse's colour (empty: it pulses), `said` is what a screen reader hears."""

    words: str
    said: str
    state: str = ""
    busy: bool = False  # the agent works: further messages wait
    waits: bool = False  # for a person: further messages wait
    stepped_in: bool = False  # that person answers instead of the agent
    can_stop: bool = False
    can_resume: bool = False
    starting: bool = False  # a message was sent and will be taken at once: it is drawn as said, not as waiting

    @property
    def queues(self) -> bool:
        """Return whether a new message waits its turn."""
        return self.busy or self.waits


def standing(rows: Rows, *, now: datetime) -> Standing:
    """Return where the conversation stands."""
    thread, waiting = rows.thread, rows.undecided
    if rows.person:
        return _stepped_in(rows, now=now)
    if thread and thread.state == Thread.State.RUNNING:
        return _running(thread, now=now)
    if waiting:
        return _waiting(waiting, rows, now=now)
    if thread and thread.state == Thread.State.STUCK:
        words = "The agent could not go on. Nothing is lost."
        return Standing(words=words, said=words, state="held", can_resume=True)
    if rows.queued:
        return _starting(rows.queued[0], now=now)
    return Standing(words="Idle", said="The agent is idle.", state="queued")


def _stepped_in(rows: Rows, *, now: datetime) -> Standing:
    """Say who answers, and what becomes meanwhile of what the agent was at."""
    assert rows.person is not None
    row, runs = rows.undecided, rows.thread and rows.thread.state == Thread.State.RUNNING
    words = f"{rows.person.name} stepped in at {moment(rows.person.since)}"
    if row is None:
        words += " · the agent stops before its next step" if runs else " · the agent is silent"
    elif row.state in waits.OPEN:
        words += " · decisions wait for the hand-back"
    else:
        words += " · decided; it waits for the hand-back"
    return Standing(
        words=words, said=f"{rows.person.name} answers instead of the agent.", state="info", waits=True, stepped_in=True
    )


def _running(thread: Thread, *, now: datetime) -> Standing:
    if thread.stop_requested_at:
        return Standing(words="Stopping before the next step", said="The agent is stopping.", busy=True)
    if thread.leased_until and thread.leased_until < now:
        words = "The worker was lost. Another one takes over."
        return Standing(words=words, said=words, state="held", busy=True, can_resume=True)
    words = thread.activity or "Writing"
    return Standing(words=f"{words}…", said=f"The agent is at work: {words}.", busy=True, can_stop=True)


def _waiting(row: Escalation, rows: Rows, *, now: datetime) -> Standing:
    if row.state not in waits.OPEN:
        late = row.decided_at is not None and now - row.decided_at > PATIENCE
        words = "Decided. " + ("No worker has taken it yet; the decision is kept." if late else "The agent goes on.")
        return Standing(words=words, said=words, state="held", waits=True, can_resume=late)
    waiting = waits.of(rows)
    words = waiting.words if waiting else ""
    said = f"Waiting for {waiting.who}." if waiting else ""
    return Standing(words=words, said=said, state="held", waits=True)


def _starting(first: StaffMessage, *, now: datetime) -> Standing:
    if now - first.sent_at <= PATIENCE:
        return Standing(words="Starting…", said="The agent is starting.", busy=True, starting=True)
    words = f"Sent at {clock(first.sent_at)}; no worker has taken it yet"
    return Standing(words=words, said=f"{words}.", state="held", can_resume=True)
