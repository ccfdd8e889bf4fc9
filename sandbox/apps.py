"""Django's entry to the app."""

from django.apps import AppConfig


class SandboxConfig(AppConfig):
    """See the package's docstring."""

    name = "sandbox"
