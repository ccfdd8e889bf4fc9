"""Django's entry to the app."""

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    """See the package's docstring."""

    name = "outbox"

    def ready(self) -> None:
        """Register the start-up checks."""
        from outbox import checks  # noqa: F401
