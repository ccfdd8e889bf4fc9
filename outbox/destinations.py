"""Where messages leave to: how each destination is called, and what its answers mean."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ledger import faults
from outbox import gateway, hooks, mail, notices, outcomes
from outbox.leases import Row
from outbox.outcomes import Outcome

Send = Callable[..., Outcome]  # (message, *, key): one call for the current step, and its outcome


class UnknownDestination(LookupError):
    """Nothing is known about how to reach it."""


def send(message: Row, *, key: str) -> Outcome:
    """Send the message's current step once, outside any transaction, and return what came of it.

    `key` is the step's idempotency key. Raises UnknownDestination before anything leaves.
    """
    try:
        way = DESTINATIONS[message["destination"]]
    except KeyError:
        raise UnknownDestination(message["destination"]) from None
    return way(message, key=key)


def _stripe(message: Row, *, key: str) -> Outcome:
    step = message["steps"][message["step"]]
    path = step["path"].format(provider_id=message["provider_id"])
    answer = gateway.post(path, step["params"], key=key, account=message["account"], version=message["api_version"])
    faults.reach("send.answered", thread=message["thread"])
    return outcomes.classify(
        answer,
        asked=message["steps"][0]["params"],
        last=message["step"] == len(message["steps"]) - 1,
        maybe_executed=message["ever_unknown"],
    )


def _email(message: Row, *, key: str) -> Outcome:
    return notices.classify(mail.post(message["steps"][message["step"]]["params"], key=key))


def _chat(message: Row, *, key: str) -> Outcome:
    return notices.classify(hooks.post(message["steps"][message["step"]]["params"]))


DESTINATIONS: Mapping[str, Send] = MappingProxyType({"stripe": _stripe, "email": _email, "chat": _chat})
