"""Walks without a plan: failures, people, events and the bank in any order; in the end the books are what the provider has.

BACKSTOP_WALKS is a list of seeds for more of them.
"""

import os
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from requests import RequestException

from billing import invoices
from billing.invoices import Reference
from ledger import invariants
from ledger.refusals import Refusal
from outbox import requests, webhooks
from tests.billing import makers
from tests.outbox.asking import carry_out
from tests.outbox.billed import link
from tests.outbox.desk import Desk, Row
from tests.outbox.events import stored
from tests.outbox.test_late import OF_CALLS

SEEDS = [int(seed) for seed in os.environ.get("BACKSTOP_WALKS", "300 304 305 310").split()]
BILLED = [int(seed) for seed in os.environ.get("BACKSTOP_WALKS", "25 28").split()]
STEPS = 45
UNBILLED = """
SELECT invoice_id FROM public.billing_payment WHERE provider_invoice_id IS NULL AND NOT stray ORDER BY id
"""
CARDS = ["pm_card_visa", "pm_card_visa", "pm_card_visa_chargeDeclined", "pm_usBankAccount_processing", "pm_card_pendingRefund"]
FAULTS = [("before", "drop"), ("after", "drop"), ("during", "500"), ("during", "500_effect"), ("after", "502"), ("before", "429")]
# What people ask for, and how often. Never `compensate`, which says of itself that the books may differ.
WISHES = {"settle_rejected": 6, "adopt": 2, "resend": 2, "look_up": 2, "refund": 3, "replay": 1, "cancel": 1}
ENDS = {
    ("payment_intent", "processing"): ["succeeded", "failed"],
    ("refund", "pending"): ["succeeded", "failed"],
    ("refund", "succeeded"): ["failed"],
}
OBJECTS = {"payment.charge": "payment_intent", "payment.refund": "refund", "payment.credit_note": "credit_note"}
EVENTS = {"payment_intent": "payment_intent.succeeded", "refund": "refund.updated", "credit_note": "credit_note.created"}


class Walk:
    """One customer, and chance."""

    paths = ("/v1/payment_intents", ".*/confirm", "/v1/refunds")  # where calls fail

    def __init__(self, desk: Desk, web: Any, seed: int) -> None:
        self.desk, self.web, self.chance = desk, web, random.Random(seed)
        self.events = 0
        self.log: list[str] = []

    def messages(self) -> list[Row]:
        rows = self.desk.owner.execute("SELECT id FROM public.outbox_message WHERE topic LIKE 'payment.%' ORDER BY id").fetchall()
        return [self.desk.read({"id": row[0]}) for row in rows]

    def any_message(self) -> Row | None:
        found = self.messages()
        return self.chance.choice(found) if found else None

    # -- what may happen ---------------------------------------------------------------------------

    def charge(self) -> None:
        self.desk.card(self.chance.choice(CARDS))
        self.desk.charge()

    def charge_again(self) -> None:
        if message := self.any_message():
            self._try(lambda: self.desk.charge_again(message["payload"]["invoice_id"]))

    def void(self) -> None:
        if message := self.any_message():
            reference = Reference(customer_id=self.desk.customer, invoice_id=message["payload"]["invoice_id"])
            with makers.about(self.desk.agent, self.desk.customer) as conn:
                self._try(lambda: invoices.void(conn, invoice=reference))

    def refund(self) -> None:
        if message := self.any_message():
            amount = self.chance.choice([10_000, 48_000])
            self._try(lambda: self.desk.refund(message["payload"]["invoice_id"], amount))

    def deliver(self) -> None:
        self.desk.owner.execute("UPDATE public.outbox_destination SET parked_until = NULL, parked_because = NULL, refusals = 0")
        self.desk.owner.execute("UPDATE public.outbox_message SET next_attempt_at = now() WHERE state <> 'leased'")
        if self.desk.owner.execute(
            "SELECT 1 FROM public.outbox_message WHERE state IN ('ready', 'uncertain', 'accepted')"
        ).fetchone():
            self.desk.deliver()

    def fail(self) -> None:
        when, mode = self.chance.choice(FAULTS)
        self.desk.provider.fault(when, mode, path=self.chance.choice(self.paths))
        self.deliver()

    def lose(self) -> None:
        """Let the first call of something new be lost on its way, and the outbox give it up."""
        self.charge() if self.chance.random() < 0.5 else self.refund()
        self.desk.provider.fault("before", "drop", path="/v1/payment_intents|/v1/refunds")
        self.deliver()
        self.desk.owner.execute("UPDATE public.outbox_message SET max_attempts = attempts + 1 WHERE state = 'uncertain'")
        self.desk.provider.fault("before", "drop", path="/v1/payment_intents|/v1/refunds")
        self.deliver()

    def ask(self) -> None:
        stuck = [message for message in self.messages() if message["state"] in ("uncertain", "dead")]
        message = self.chance.choice(stuck) if stuck else self.any_message()
        if message is None:
            return
        possible = requests.possible(self.web, message=message["id"])
        kind = self.chance.choices(list(WISHES), weights=list(WISHES.values()))[0]
        if kind in possible:
            with suppress(requests.NotPossible), self.web.transaction():
                requests.ask(self.web, message=message["id"], kind=kind, reason="r", user=7)
            carry_out(self.desk)

    def tell(self) -> None:
        if message := self.any_message():
            self._tell(message, lie=self.chance.random() < 0.3)

    def settle_at_provider(self) -> None:
        found = [one for message in self.messages() for one in self._objects(message)]
        due = [(one, ENDS.get((one["object"], one["status"]))) for one in found]
        if moving := [(one, ends) for one, ends in due if ends]:
            one, ends = self.chance.choice(moving)
            self.desk.provider.settle(one["id"], self.chance.choice(ends))

    def arrive_late(self) -> None:
        """Let a call that was lost on its way be carried out now, whatever we have come to believe of it."""
        lost = [message for message in self.messages() if message["ever_unknown"] and not self._objects(message)]
        if not lost:
            return
        message = self.chance.choice(lost)
        params = self.desk.provider.flat(message["steps"][0]["params"])
        more = {"confirm": "true", "off_session": "true"} if message["topic"] == "payment.charge" else {}
        with suppress(AssertionError, RequestException):  # the provider refuses it, or fails at this too
            self.desk.provider.create(message["steps"][0]["path"], **params, **more)

    # -- the end -----------------------------------------------------------------------------------

    def rest(self) -> None:
        """Let everything come that comes in the end: look-ups, and each object's event, until nothing changes."""
        self.desk.provider.call("DELETE", "faults")
        for _ in range(4):
            self.deliver()
            for message in self.messages():
                self._tell(message)
            carry_out(self.desk)

    def _objects(self, message: Row | None) -> list[dict[str, Any]]:
        return self.desk.provider.objects(OBJECTS[message["topic"]], message["uid"]) if message else []

    def _tell(self, message: Row, *, lie: bool = False) -> None:
        for one in self._objects(message):
            self.events += 1
            status = "succeeded" if lie else one["status"]
            about = {"id": one["id"], "metadata": one["metadata"], "status": status}
            stored(self.desk.owner, kind=EVENTS[one["object"]], about=about, event_id=f"evt_{self.events}")
        self.desk.owner.execute("UPDATE public.outbox_webhook_event SET received_at = now() - interval '1 day'")
        webhooks.process_due(self.desk.pool, go_on=lambda: True)

    def _try(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except Refusal as refusal:
            self.log.append(f"refused: {refusal}")
        except Exception as error:
            if "billing_" not in str(error):  # a constraint of the books: the tool would say why
                raise

    def take(self) -> None:
        act = self.chance.choice(self.acts())
        self.log.append(act.__name__)
        act()

    def acts(self) -> list[Callable[[], None]]:
        """Return what may happen, each as often as it is likely."""
        return [
            *(self.charge, self.charge_again, self.void, self.refund, self.refund, self.deliver, self.fail, self.fail),
            *(self.lose, self.lose, self.ask, self.ask, self.ask, self.tell, self.settle_at_provider, self.arrive_late),
        ]


class BilledWalk(Walk):
    """The same, where payments pay invoices at the provider too."""

    paths = (*Walk.paths, "/v1/credit_notes", "/v1/credit_notes")

    def bill(self) -> None:
        rows = self.desk.owner.execute(UNBILLED).fetchall()
        if rows:
            link(self.desk.owner, self.desk.provider, invoice=self.chance.choice(rows)[0])

    def acts(self) -> list[Callable[[], None]]:
        return [*super().acts(), self.bill, self.bill, self.refund]


@pytest.mark.parametrize("seed", BILLED)
def test_what_was_refunded_is_credited_once(desk: Desk, web: Any, keeper: Any, seed: int) -> None:
    walk = BilledWalk(desk, web, seed)
    walk.charge()
    walk.deliver()
    for _ in range(STEPS):
        walk.take()
    end(walk, keeper)
    for note in [one for one in walk.messages() if one["topic"] == "payment.credit_note"]:
        made = desk.provider.objects("credit_note", note["uid"])
        expected = {"succeeded": [note["provider_id"]], "rejected": [], "cancelled": []}.get(note["state"])
        assert len(made) <= 1 and expected in (None, [one["id"] for one in made]), (note["id"], note["state"], made, walk.log)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_books_are_what_the_provider_has(desk: Desk, web: Any, keeper: Any, seed: int) -> None:
    walk = Walk(desk, web, seed)
    walk.charge()
    for _ in range(STEPS):
        walk.take()
    end(walk, keeper)


def end(walk: Walk, keeper: Any) -> None:
    """Let everything come to rest, and check the books, and each message against what moved."""
    walk.rest()
    asked = [one for one in invariants.every() if one.name.startswith(("billing.", "outbox.")) and one.name not in OF_CALLS]
    broken = [one.invariant.name for one in invariants.findings(keeper, quiet=False, invariants=asked) if not one.holds]
    assert broken == [], walk.log
    for message in walk.messages():
        check(walk.desk, message, walk.log)


def check(desk: Desk, message: Row, log: list[str]) -> None:
    """Check one message against what moved for it; only one that waits for somebody may have moved and not be settled."""
    moved = desk.provider.movements(message["uid"])
    if message["topic"] == "payment.credit_note":
        assert moved == [], (message["id"], moved, log)
        return
    amount = message["payload"]["amount_minor"] * (1 if message["topic"] == "payment.charge" else -1)
    assert [one for one in moved if one == amount][1:] == [], (message["id"], moved, log)  # once at most
    if message["state"] == "succeeded":
        back = desk.one(
            "SELECT count(*) AS n FROM public.billing_refund WHERE status = 'reversed' AND id = %s",
            message["payload"].get("refund_id", 0),
        )["n"]
        assert sum(moved) == (0 if back else amount), (message["id"], moved, log)
    elif message["state"] in ("rejected", "cancelled") and not waits_behind(desk, message):
        assert sum(moved) == 0, (message["id"], moved, log)


def waits_behind(desk: Desk, message: Row) -> bool:
    """Return whether the news of a refund waits for another one, which holds its amount and a person has to look at."""
    held = desk.one(
        "SELECT count(*) AS n FROM public.outbox_message WHERE aggregate = %s AND topic = 'payment.refund' AND state = 'dead'",
        message["aggregate"],
    )["n"]
    return bool(held)
