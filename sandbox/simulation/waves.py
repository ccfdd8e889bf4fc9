"""Carrying a wave of orders to its end: workers are rung for what is due, and time jumps when nothing is."""

import time
from collections.abc import Mapping
from typing import Any

from sandbox.simulation.clock import Clock
from sandbox.simulation.places import RELAYS, THREADS, Place

LOOK = 0.05  # seconds between two looks
AGAIN = 0.5  # seconds until a bell is rung again
DAY = 24 * 3600
# How events come during a wave; `late` ones come after two days of the sandbox's clock, most of them at the very end.
MANNERS = ("late", "twice", "prompt", "newest first")
WISHES: Mapping[str, Mapping[str, Any]] = {
    "late": {"action": "delay", "seconds": 2 * DAY},
    "twice": {"action": "duplicate", "copies": 2},
    "prompt": {"action": "normal"},
    "newest first": {"action": "reorder"},
}


class Unquiet(Exception):
    """Something is still under way although nothing stands in its way."""


def set_manner(place: Place, manner: str) -> None:
    """Have events come in this way from now on."""
    place.provider.control("POST", "webhooks", {"action": "normal"})
    place.provider.control("POST", "webhooks", WISHES[manner])


def settle(place: Place, clock: Clock, *, events: bool = False, seconds: float = 300.0) -> None:
    """Return when every message is settled or with a person, with `events` when every event has come too; raise Unquiet."""
    deadline, rung = time.monotonic() + seconds, 0.0
    while True:
        coming = undelivered(place) if events else 0  # asked first: an event that has come since is seen by the look
        look = clock.look()
        if time.monotonic() > deadline:
            raise Unquiet(f"After {seconds:g} s {look.leased} messages are leased, {look.due} due and {len(look.waits)} waiting.")
        if look.busy and time.monotonic() > rung + AGAIN:
            place.ring(min(look.due, THREADS * len(RELAYS)))
            rung = time.monotonic()
        elif look.busy:
            time.sleep(LOOK)
        elif look.waits:
            clock.jump_to_next()
            rung = 0.0
        elif not coming:
            return
        else:
            time.sleep(LOOK)


def undelivered(place: Place) -> int:
    """Return how many events are still to come."""
    told = place.provider.control("GET", "webhooks")
    return sum(item["state"] == "waiting" for item in told["deliveries"])
