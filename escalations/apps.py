"""Django's entry to the app."""

from django.apps import AppConfig


class EscalationsConfig(AppConfig):
    """See the package's docstring."""

    name = "escalations"
