"""Deliveries that an application must refuse: of others, changed, too old, from the future, of the live mode."""

import dataclasses
import http.client
import json
import time

from sandbox.stripe import webhooks
from sandbox.stripe.exchange import Json
from sandbox.stripe.webhooks import Address

AGE = 3600  # seconds, far more than anybody tolerates
HOWS = ("secret", "changed", "old", "future", "livemode")


class Undelivered(Exception):
    """Nobody answered."""


def send(address: Address, event: Json, *, how: str) -> int:
    """Deliver an event once, forged, and return the HTTP status; it is no delivery of ours, so nothing is repeated or kept."""
    forged, payload = address, json.dumps(event | {"livemode": how == "livemode"}).encode()
    if how == "secret":
        forged = dataclasses.replace(address, secrets=["whsec_of_somebody_else"])
    at = int(time.time()) + {"old": -AGE, "future": AGE}.get(how, 0)
    signature = webhooks.sign(payload, secrets=forged.secrets, at=at)
    try:
        return webhooks.post(address, payload + b" " if how == "changed" else payload, signature=signature)
    except (OSError, http.client.HTTPException) as failure:
        raise Undelivered(f"The webhook address did not answer ({type(failure).__name__}).") from failure
