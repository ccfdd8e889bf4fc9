"""Posting one line to a chat's incoming webhook, such as Slack's. Its address is a secret: it is in no row and no log."""

from collections.abc import Mapping
from typing import Any

import requests
from django.conf import settings

from outbox.outcomes import Answer

TIMEOUTS = (3, 10)  # seconds: to connect, and between two bytes of an answer


def post(params: Mapping[str, Any]) -> Answer:
    """Post `params["text"]` and return the answer."""
    if not settings.BACKSTOP_NOTIFY_WEBHOOK:
        return Answer(sent=False, failure="BACKSTOP_NOTIFY_WEBHOOK is not set")
    session = requests.Session()
    session.trust_env = False
    try:
        found = session.post(
            settings.BACKSTOP_NOTIFY_WEBHOOK, json={"text": params["text"]}, timeout=TIMEOUTS, allow_redirects=False
        )
    except (requests.ConnectTimeout, requests.exceptions.InvalidURL, requests.exceptions.MissingSchema) as error:
        return Answer(sent=False, failure=type(error).__name__)
    except requests.RequestException as error:
        return Answer(failure=type(error).__name__)
    return Answer(status=found.status_code, retry_after=_seconds(found.headers.get("Retry-After")))


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isdigit() else None
