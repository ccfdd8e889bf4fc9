"""The provider's SDK behind one door: the only module that knows Stripe's library. It never retries by itself."""

import json
import logging
import threading
from collections.abc import Mapping
from typing import Any

import requests
import stripe
import urllib3.exceptions
from django.conf import settings

from outbox.live import check_key
from outbox.outcomes import Answer

WEBHOOK_TOLERANCE = 300  # seconds, both ways

stripe.enable_telemetry = False
logging.getLogger("stripe").setLevel(logging.WARNING)  # it logs addresses and the provider's text of every error
clients = threading.local()  # a session is not made for several threads


class KeyMissing(Exception):
    """A POST needs the idempotency key that is stored with its message."""


class BadWebhook(Exception):
    """The body or its signature is not what the provider sends."""


def post(path: str, params: Mapping[str, Any], *, key: str, account: str = "", version: str = "") -> Answer:
    """Send one POST with its stored key and return the answer; raise KeyMissing before anything leaves."""
    if not key:
        raise KeyMissing(path)
    return _call("post", path, params, idempotency_key=key, stripe_account=account, stripe_version=version)


def get(path: str, params: Mapping[str, Any], *, account: str = "", version: str = "") -> Answer:
    """Send one GET and return the answer."""
    return _call("get", path, params, stripe_account=account, stripe_version=version)


def _client() -> stripe.StripeClient:
    """Return this thread's client for the settings as they are."""
    key, base, timeouts = made_for = (settings.STRIPE_API_KEY, settings.STRIPE_API_BASE, settings.STRIPE_TIMEOUTS)
    if getattr(clients, "made_for", None) != made_for:
        check_key(key, base)
        session = requests.Session()
        session.trust_env = False  # no proxy, and no ~/.netrc that would replace the key
        session.max_redirects = 0  # following one could send a POST twice
        transport = stripe.RequestsClient(timeout=timeouts, session=session)
        clients.client = stripe.StripeClient(key, base_addresses={"api": base}, max_network_retries=0, http_client=transport)
        clients.made_for = made_for
    found: stripe.StripeClient = clients.client
    return found


def _call(method: str, path: str, params: Mapping[str, Any], **options: str) -> Answer:
    given = {name: value for name, value in options.items() if value}
    client = _client()
    try:
        response = client.raw_request(method, path, **params, **given)
    except stripe.StripeError as error:
        return _failed(error)
    except Exception as error:  # whatever it was, the request may have left
        return Answer(failure=type(error).__name__)
    return _answer(response.code, response.body, response.headers)


def _failed(error: stripe.StripeError) -> Answer:
    if error.http_status is None:
        return Answer(sent=not never_connected(error), failure=_cause(error))
    # An unreadable answer carries its headers in json_body.
    headers = error.headers or (error.json_body if isinstance(error.json_body, Mapping) else None)
    return _answer(error.http_status, error.http_body, headers)


def _answer(status: int, body: Any, headers: Any) -> Answer:
    named = {str(name).lower(): str(value) for name, value in dict(headers or {}).items()}
    return Answer(
        status=status,
        body=_parsed(body),
        request_id=named.get("request-id"),
        replayed=named.get("idempotent-replayed") == "true",
        retry_after=_seconds(named.get("retry-after")),
    )


def _parsed(body: Any) -> dict[str, Any] | None:
    try:
        found = json.loads(body, parse_constant=_no_constant)
    except (TypeError, ValueError, RecursionError):  # ValueError: a body that is not UTF-8 too
        return None
    return found if isinstance(found, dict) else None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isdecimal() else None


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception and everything that it was raised from or carries as its reason."""
    found: list[BaseException] = []
    waiting: list[Any] = [error]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    return found


def never_connected(error: BaseException) -> bool:
    """Return whether the connection was provably never made (refused, unknown host, no answer to connecting).

    It holds only because nothing here retries: a retry would hide an earlier try that did connect.
    """
    never = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError, requests.exceptions.ConnectTimeout)
    return any(isinstance(one, never) for one in _chain(error))


def _cause(error: stripe.StripeError) -> str:
    """Return the class names of what went wrong, from the SDK's error down to the socket's."""
    return " < ".join(dict.fromkeys(type(one).__name__ for one in _chain(error)))[:200]


def verified(body: bytes, signature: str, *, now: float) -> dict[str, Any]:
    """Return a webhook's event after checking its signature with every secret and its time both ways; raise BadWebhook."""
    if not any(_signed(body, signature, secret) for secret in settings.STRIPE_WEBHOOK_SECRETS):
        raise BadWebhook("The signature fits none of our secrets, or is too old.")
    if _signed_at(signature) > now + WEBHOOK_TOLERANCE:
        raise BadWebhook("The signature's time is in the future.")
    event = _parsed(body)
    if event is None or event.get("object") != "event":
        raise BadWebhook("The body is not an event.")
    return event


def _signed(body: bytes, signature: str, secret: str) -> bool:
    try:
        return bool(stripe.WebhookSignature.verify_header(body.decode(), signature, secret, tolerance=WEBHOOK_TOLERANCE))
    except (stripe.SignatureVerificationError, ValueError, TypeError):  # not UTF-8; a signature that is not ASCII
        return False


def _signed_at(signature: str) -> int:
    """Return the time in a header whose signature was found right: the first, as the signature's check takes it."""
    return int(next(part[2:] for part in signature.split(",") if part.startswith("t=")))
