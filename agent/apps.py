"""Django's entry to the app."""

from django.apps import AppConfig


class AgentConfig(AppConfig):
    """See the package's docstring."""

    name = "agent"

    def ready(self) -> None:
        """Register the start-up checks."""
        from agent import checks  # noqa: F401
