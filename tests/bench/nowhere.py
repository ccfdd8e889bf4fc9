"""A destination that does nothing, and a topic that leaves for it: what is left is what the outbox itself costs."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings

from outbox import destinations
from outbox.handlers import Handler, Step, untouched
from outbox.outcomes import Outcome

TOPIC = "bench.nothing"


def steps(payload: Mapping[str, Any], uid: UUID) -> list[Step]:
    """Return one step."""
    return [Step(name="nothing", path="/nothing")]


def send(message: Mapping[str, Any], *, key: str) -> Outcome:
    """Contact nobody and succeed."""
    return Outcome(kind="succeeded", http_status=200, provider_id=key)


HANDLERS = (
    Handler(
        topic=TOPIC, destination="nowhere", repeat="keyed", steps=steps, settle=untouched, sentence=lambda payload: "nothing"
    ),
)


def install() -> None:
    """Let this process deliver there, too."""
    settings.BACKSTOP_OUTBOX_HANDLERS = [*settings.BACKSTOP_OUTBOX_HANDLERS, "tests.bench.nowhere.HANDLERS"]
    destinations.DESTINATIONS = {**destinations.DESTINATIONS, "nowhere": send}
