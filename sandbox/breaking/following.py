"""Following a request to its end: what the books show is told once, in the order in which it shows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from agent import events
from sandbox.breaking import demonstration, facts, requests, runs
from sandbox.breaking.facts import Facts
from sandbox.breaking.runs import Run

SECONDS = 240.0  # a lease of a thread or of a message runs out before
HALTED = ("waiting", "stuck")
SOURCES = {"response": "by its answer", "lookup": "by looking it up", "webhook": "by its webhook", "person": "by a person"}
LATE = f"It has not ended within {SECONDS:.0f} s. The conversation and the strip above say where it stands."


@dataclass
class Follower:
    """What of a run's request was told already. `gone` is said of a worker that is lost in the middle of the batch."""

    run: Run
    gone: str = "Its worker, process {worker}, is gone before it could commit: none of the {calls} calls is saved."
    said: set[str] = field(default_factory=set)
    fence: int = 0  # of the worker that was lost

    def once(self, key: str, text: str, *, state: str, attempt: UUID | None = None) -> None:
        """Tell something the first time."""
        if key not in self.said:
            self.said.add(key)
            self.run.tell(text, state=state, attempt=attempt)

    def until(self, condition: Callable[[Facts], bool], *, seconds: float, otherwise: str) -> Facts:
        """Tell what is new until something is so, and return the facts. Raise Late."""

        def look() -> Facts | None:
            found = self._look()
            return found if condition(found) else None

        return runs.wait(look, seconds=seconds, otherwise=otherwise)

    def _look(self) -> Facts:
        assert self.run.request and self.run.since
        with demonstration.connect() as conn:
            found = facts.of(conn, self.run.request, since=self.run.since)
        self._of_the_batch(found)
        self._of_the_charge(found)
        return found

    def _of_the_batch(self, found: Facts) -> None:
        still_open = bool(found.attempts) and found.attempts[-1].outcome is None
        if still_open and found.worker and not demonstration.alive(found.worker) and not found.executed:
            self.fence = self.fence or found.fence
            self.once(
                "dead", self.gone.format(worker=found.worker, calls=requests.CALLS), state="undone", attempt=found.attempts[-1].id
            )
        if "dead" in self.said and not found.held and found.committed is None:
            self._lease_over()
        if "dead" in self.said and found.fence > self.fence:
            self.once("taken", "Its lease has run out. A new worker has taken the conversation over.", state="info")
        if found.committed and found.message:
            number = found.attempts.index(found.committed) + 1
            which = "The batch, begun again," if number > 1 else "The batch"
            self.once(
                "done",
                f"{which} is committed: all {found.executed} calls, together.",
                state="applied",
                attempt=found.committed.id,
            )

    def _lease_over(self) -> None:
        """Have the conversation drawn again: its page hears of no event when a lease runs out."""
        if "over" not in self.said and self.run.request:
            self.said.add("over")
            with demonstration.connect() as conn:
                events.emit(conn, thread=self.run.request.thread, kind="status")
            events.publish(self.run.request.thread, "status")

    def _of_the_charge(self, found: Facts) -> None:
        if found.unknown:
            words = "Stripe’s answer is lost. Nobody knows whether the card was charged, so it is looked up and not sent again."
            self.once("unknown", words, state="uncertain")
        if found.sending == "succeeded":
            self.once("paid", f"Stripe has confirmed the charge, {SOURCES.get(found.source, 'in the end')}.", state="confirmed")


def ended(found: Facts) -> bool:
    """Say whether nothing more comes of a request: it is done, a person has to look, the agent refused it or was stopped."""
    if found.state in HALTED or found.sending in ("rejected", "dead", "cancelled"):
        return True
    paid = found.sending == "succeeded" and bool(found.payments)
    done = paid or not found.message
    return done and found.state == "idle" and not found.queued


def follow(follower: Follower) -> None:
    """Tell how a request goes on until it has ended, and whether it was done once. Raise Late."""
    run = follower.run
    if run.request is None:
        return
    found = follower.until(ended, seconds=SECONDS, otherwise=LATE)
    if not found.message:
        return run.tell("It did not end as asked: no charge was queued. The conversation says why.", state="held")
    charges = _charges(found)
    once = (found.executed, len(charges), list(found.payments)) == (requests.CALLS, 1, [run.request.charged])
    if once:
        amount = requests.money(run.request.charged, run.request.currency)
        run.tell(
            f"Done once: {found.executed} calls applied, 1 charge of {amount} at Stripe, 1 payment in the books.",
            state="confirmed",
        )
    else:
        words = f"{len(charges)} charges at Stripe, {len(found.payments)} payments in the books"
        run.tell(f"It did not end as asked: {found.executed} of {requests.CALLS} calls applied, {words}.", state="held")


def _charges(found: Facts) -> list[int]:
    """Return the amounts that Stripe's own log has for the message of the request."""
    with demonstration.provider() as provider:
        moved = provider.control("GET", "money")["movements"]
    return [one["amount"] for one in moved if one["metadata"].get("backstop_uid") == str(found.message)]
