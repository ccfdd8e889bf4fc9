"""The control API under /_sandbox/: clock, faults, webhooks, the money log and everything else that Stripe does not offer."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs

from sandbox.stripe import events, faults, money, settlements, webhooks
from sandbox.stripe.api import Api
from sandbox.stripe.exchange import Answer, Call, Json, as_json
from sandbox.stripe.store import Store

FURTHEST = 10 * 365 * 24 * 60 * 60  # seconds that one call may advance the clock
HEALTH = "/_sandbox/health"


class Rejected(Exception):
    """A control call that makes no sense; its message says why."""


class Control:
    """What the control API can reach."""

    def __init__(self, *, store: Store, api: Api, rules: faults.Faults, sender: webhooks.Sender | None) -> None:
        self._store = store
        self._api = api
        self._rules = rules
        self._sender = sender
        self._routes: dict[tuple[str, str], Callable[[Json], Json]] = {
            ("GET", "money"): self._money,
            ("GET", "objects"): self._objects,
            ("GET", "clock"): lambda given: {"now": store.now()},
            ("POST", "clock"): self._advance,
            ("GET", "faults"): lambda given: {"faults": rules.listed()},
            ("POST", "faults"): rules.add,
            ("DELETE", "faults"): self._lift_faults,
            ("GET", "webhooks"): self._deliveries,
            ("POST", "webhooks"): self._change_webhooks,
            ("POST", "settle"): self._settle,
        }

    def answer(self, call: Call) -> Answer:
        """Return the answer to one control call; all but health need the API key."""
        if (call.method, call.path) == ("GET", HEALTH):
            return as_json(200, {"status": "ok", "now": self._store.now()})
        if not self._api.authentic(call):
            return as_json(401, {"error": "The control API needs the sandbox's API key as a bearer token."})
        operate = self._routes.get((call.method, call.path.removeprefix("/_sandbox/")))
        if operate is None:
            return as_json(404, {"error": f"There is no {call.method} {call.path}."})
        try:
            return as_json(200, operate(read(call)))
        except (Rejected, faults.BadRule, settlements.Impossible) as error:
            return as_json(400, {"error": str(error)})

    def _money(self, given: Json) -> Json:
        after = given.get("after", "0")
        if not re.fullmatch(r"[0-9]{1,18}", after):
            raise Rejected("`after` is the number of a movement.")
        with self._store.transaction() as tx:
            return {"movements": money.movements(tx, after=int(after))}

    def _objects(self, given: Json) -> Json:
        kind = given.get("kind")
        with self._store.transaction() as tx:
            rows = tx.execute("SELECT account, body FROM object WHERE :kind IS NULL OR kind = :kind ORDER BY seq", {"kind": kind})
            return {"objects": [json.loads(row["body"]) | {"account": row["account"]} for row in rows]}

    def _advance(self, given: Json) -> Json:
        seconds = number(given, "advance", most=FURTHEST)
        now = self._store.advance(seconds=seconds)
        settlements.settle_due(self._store)
        return {"now": now}

    def _lift_faults(self, given: Json) -> Json:
        self._rules.clear()
        return {"faults": []}

    def _settle(self, given: Json) -> Json:
        with self._store.transaction() as tx:
            return settlements.settle(tx, object_id=str(given.get("id")), status=str(given.get("status")))

    def _deliveries(self, given: Json) -> Json:
        with self._store.transaction() as tx:
            return {"deliveries": webhooks.deliveries(tx)} | asdict(self._sending().manners())

    def _change_webhooks(self, given: Json) -> Json:
        """Do one action: resend, pause, resume, delay, duplicate, reorder, drop, normal."""
        sender, action = self._sending(), given.get("action")
        if action == "resend":
            self._resend(str(given.get("event")))
            return asdict(sender.manners())
        changes: dict[Any, Callable[[], dict[str, object]]] = {
            "pause": lambda: {"paused": True},
            "resume": lambda: {"paused": False},
            "delay": lambda: {"delay": number(given, "seconds", most=FURTHEST)},
            "duplicate": lambda: {"copies": number(given, "copies", most=10)},
            "reorder": lambda: {"newest_first": True},
            "drop": lambda: {"drop": number(given, "count", most=10_000)},
            "normal": dict,
        }
        if action not in changes:
            raise Rejected(f"`action` is one of resend, {', '.join(changes)}.")
        return asdict(sender.behave(**changes[action]()))

    def _resend(self, event_id: str) -> None:
        with self._store.transaction() as tx:
            if not tx.execute("SELECT 1 FROM object WHERE id = ? AND kind = 'event'", (event_id,)).fetchone():
                raise Rejected(f"There is no event {event_id}.")
            events.deliver(tx, event_id)

    def _sending(self) -> webhooks.Sender:
        if self._sender is None:
            raise Rejected("The sandbox was started without --webhook-url: it sends no webhooks.")
        return self._sender


def read(call: Call) -> Json:
    """Return the JSON object of a POST, or the query of a GET."""
    if call.method != "POST":
        return {name: values[-1] for name, values in parse_qs(call.query).items()}
    try:
        given = json.loads(call.body or b"{}")
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError are ones
        raise Rejected("The body is not JSON.") from error
    if not isinstance(given, dict):
        raise Rejected("The body is not a JSON object.")
    return given


def number(given: Json, name: str, *, most: int) -> int:
    """Return a whole number from 1 to `most` of a body."""
    value = given.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise Rejected(f"`{name}` is a whole number from 1 to {most}.")
    return value
