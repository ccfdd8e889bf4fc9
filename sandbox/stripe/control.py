"""The control API under /_sandbox/: clock, faults, webhooks, the money log and everything else that Stripe does not offer."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs

from sandbox.stripe import events, faults, forgeries, listings, money, settlements, webhooks
from sandbox.stripe.api import Api
from sandbox.stripe.exchange import Answer, Call, Json, as_json
from sandbox.stripe.limits import Limit, Limiter
from sandbox.stripe.store import Store

FURTHEST = 10 * 365 * 24 * 60 * 60  # seconds that one call may advance the clock
MOST_CALLS = 10_000  # a second
LONGEST_PAGE = 200  # lines of a list
HEALTH = "/_sandbox/health"


class Rejected(Exception):
    """A control call that makes no sense; its message says why."""


class Control:
    """What the control API can reach."""

    def __init__(self, *, store: Store, api: Api, rules: faults.Faults, limiter: Limiter, sender: webhooks.Sender | None) -> None:
        self._store = store
        self._api = api
        self._rules = rules
        self._limiter = limiter
        self._sender = sender
        self._routes: dict[tuple[str, str], Callable[[Json], Json]] = {
            ("GET", "money"): self._money,
            ("GET", "sums"): lambda given: self._look(listings.sums),
            ("GET", "objects"): self._objects,
            ("GET", "under_way"): lambda given: self._look(listings.under_way),
            ("GET", "clock"): lambda given: {"now": store.now(), "ahead": store.ahead()},
            ("POST", "clock"): self._advance,
            ("GET", "faults"): lambda given: {"faults": rules.listed()},
            ("POST", "faults"): rules.add,
            ("DELETE", "faults"): self._lift_faults,
            ("GET", "limit"): lambda given: asdict(limiter.limit) | {"refused": limiter.refused},
            ("POST", "limit"): self._set_limit,
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
        except (Rejected, faults.BadRule, settlements.Impossible, events.Unknown, forgeries.Undelivered) as error:
            return as_json(400, {"error": str(error)})

    def _money(self, given: Json) -> Json:
        if "limit" in given:
            return self._look(listings.movements, **cursor(given))
        after = digits(given, "after", default=0)
        return self._look(lambda tx: {"movements": money.movements(tx, after=after)})

    def _objects(self, given: Json) -> Json:
        if "id" in given:
            return self._look(lambda tx: listings.found(tx, given["id"]))
        kind = given.get("kind")
        if "limit" in given:
            return self._look(listings.objects, kinds=kind.split(",") if kind else list(listings.KINDS), **cursor(given))
        with self._store.transaction() as tx:
            rows = tx.execute("SELECT account, body FROM object WHERE :kind IS NULL OR kind = :kind ORDER BY seq", {"kind": kind})
            return {"objects": [json.loads(row["body"]) | {"account": row["account"]} for row in rows]}

    def _look(self, listed: Callable[..., Json], **given: Any) -> Json:
        with self._store.transaction() as tx:
            return listed(tx, **given)

    def _advance(self, given: Json) -> Json:
        seconds = number(given, "advance", most=FURTHEST)
        now = self._store.advance(seconds=seconds)
        settlements.settle_due(self._store)
        return {"now": now}

    def _lift_faults(self, given: Json) -> Json:
        if "id" in given:
            self._rules.lift(digits(given, "id", default=0))
        else:
            self._rules.clear()
        return {"faults": self._rules.listed()}

    def _set_limit(self, given: Json) -> Json:
        names = [name for name in ("per_second", "per_endpoint") if given.get(name) is not None]
        self._limiter.set(Limit(**{name: number(given, name, most=MOST_CALLS) for name in names}))
        return asdict(self._limiter.limit) | {"refused": 0}

    def _settle(self, given: Json) -> Json:
        with self._store.transaction() as tx:
            return settlements.settle(tx, object_id=str(given.get("id")), status=str(given.get("status")))

    def _deliveries(self, given: Json) -> Json:
        manners = asdict(self._sending().manners())
        if "limit" in given:
            return self._look(listings.deliveries, **cursor(given)) | manners
        return self._look(lambda tx: {"deliveries": webhooks.deliveries(tx)}) | manners

    def _change_webhooks(self, given: Json) -> Json:
        """Do one action: resend, twin, forge, pause, resume, delay, duplicate, reorder, in_order, drop, normal."""
        sender, action = self._sending(), given.get("action")
        if action in ("resend", "twin"):
            self._look(events.twin if action == "twin" else events.again, event_id=str(given.get("event")))
            return asdict(sender.manners())
        if action == "forge":
            return self._forge(given)
        changes: dict[Any, Callable[[], dict[str, object]]] = {
            "pause": lambda: {"paused": True},
            "resume": lambda: {"paused": False},
            "delay": lambda: {"delay": number(given, "seconds", least=0, most=FURTHEST)},
            "duplicate": lambda: {"copies": number(given, "copies", most=10)},
            "reorder": lambda: {"newest_first": True},
            "in_order": lambda: {"newest_first": False},
            "drop": lambda: {"drop": number(given, "count", least=0, most=10_000)},
            "normal": dict,
        }
        if action not in changes:
            raise Rejected(f"`action` is one of resend, twin, forge, {', '.join(changes)}.")
        return asdict(sender.behave(**changes[action]()))

    def _forge(self, given: Json) -> Json:
        if given.get("how") not in forgeries.HOWS:
            raise Rejected(f"`how` is one of {', '.join(forgeries.HOWS)}.")
        event = self._look(events.found, event_id=str(given.get("event")))
        return {"status": forgeries.send(self._sending().address, event, how=str(given["how"]))}

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


def number(given: Json, name: str, *, least: int = 1, most: int) -> int:
    """Return a whole number from `least` to `most` of a body."""
    value = given.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Rejected(f"`{name}` is a whole number from {least} to {most}.")
    return value


def digits(given: Json, name: str, *, default: int) -> int:
    """Return a whole number of a query."""
    value = given.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,18}", value):
        raise Rejected(f"`{name}` is a whole number.")
    return int(value)


def cursor(given: Json) -> dict[str, int]:
    """Return which page of a list a query asks for."""
    most = digits(given, "limit", default=0)
    if not 1 <= most <= LONGEST_PAGE:
        raise Rejected(f"`limit` is a whole number from 1 to {LONGEST_PAGE}.")
    return {"before": digits(given, "before", default=10**18 - 1), "most": most}
