"""Who may see the outbox, and ask something of a message. The webhook needs no person: its signature is its permission."""

from typing import Any

from ledger.roles import ADMIN, check_role, roles_of


def check_user_can_browse_outbox(user: Any) -> None:
    """Raise PermissionDenied unless the person administers."""
    check_role(user, ADMIN)


def user_can_browse_outbox(user: Any) -> bool:
    """Return whether the person may."""
    return ADMIN in roles_of(user)


def check_user_can_ask_of_message(user: Any) -> None:
    """Raise PermissionDenied unless the person may withdraw or replay a message."""
    check_role(user, ADMIN)


def user_can_ask_of_message(user: Any) -> bool:
    """Return whether the person may."""
    return ADMIN in roles_of(user)
