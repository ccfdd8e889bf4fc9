"""Django's entry to the app."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    """See the package's docstring."""

    name = "config"
