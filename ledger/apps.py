"""Django's entry to the app."""

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """See the package's docstring."""

    name = "ledger"

    def ready(self) -> None:
        """Register the start-up checks."""
        from ledger import checks  # noqa: F401
