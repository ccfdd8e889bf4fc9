"""Django's entry to the app."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """See the package's docstring."""

    name = "billing"
