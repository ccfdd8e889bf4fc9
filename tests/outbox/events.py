"""Events as the provider sends them: a body, its signature, and the address that takes them."""

import json
import time
from typing import Any

from django.test import Client
from stripe import WebhookSignature

SECRET = "whsec_outbox"


def event_of(**changes: Any) -> dict[str, Any]:
    made = {
        "id": "evt_1",
        "object": "event",
        "type": "payment_intent.succeeded",
        "livemode": False,
        "data": {"object": {"id": "pi_1", "object": "payment_intent", "metadata": {}}},
    }
    return made | changes


def stored(owner: Any, *, kind: str, about: dict[str, Any], event_id: str, **more: Any) -> None:
    """Keep an event as the page does that takes it."""
    owner.execute(
        "INSERT INTO public.outbox_webhook_event (event_id, type, object_id, payload) VALUES (%s, %s, %s, %s)",
        (event_id, kind, about["id"], json.dumps(event_of(data={"object": about}, **more))),
    )


def signed(body: str, *, secret: str = SECRET, at: float | None = None) -> str:
    return str(WebhookSignature.generate_signature_header(body, secret, timestamp=int(at or time.time())))


def send(body: str | bytes, signature: str | None = None) -> Any:
    text = body if isinstance(body, str) else body.decode("latin-1")
    header = signed(text) if signature is None else signature
    return Client(enforce_csrf_checks=True).post(
        "/webhooks/stripe", data=body, content_type="application/json", headers={"Stripe-Signature": header}
    )
