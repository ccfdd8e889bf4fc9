"""The external effect of a call as pages show it: what it does, and where it stands."""

from dataclasses import dataclass

from outbox import fates, handlers
from outbox.models import Message


@dataclass(frozen=True, kw_only=True)
class Effect:
    """An outbox message, seen from the call that queued it."""

    message: Message

    @property
    def fate(self) -> fates.Fate:
        """Return where it stands."""
        return fates.fate(self.message)

    @property
    def sentence(self) -> str:
        """Return what it does in words."""
        return handlers.sentence(topic=self.message.topic, payload=self.message.payload)
