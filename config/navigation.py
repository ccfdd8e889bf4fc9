"""What the frame of every page shows."""

from django.http import HttpRequest


def navigation(request: HttpRequest) -> dict[str, object]:
    """Return the context that every template gets."""
    return {}
