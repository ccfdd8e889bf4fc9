"""Django's entry to the app."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    """See the package's docstring."""

    name = "config"

    def ready(self) -> None:
        """Register the checks, and make our Celery application the current one, so that any process can ring a bell."""
        from config import celery, checks  # noqa: F401
