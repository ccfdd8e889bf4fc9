"""Django's entry to the app."""

from django.apps import AppConfig


class AgentConfig(AppConfig):
    """See the package's docstring."""

    name = "agent"
