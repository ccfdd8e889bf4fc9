"""Who may look into the Stripe sandbox and change it: admins, in a demonstration."""

from typing import Any

from ledger.roles import ADMIN, check_role, roles_of
from sandbox.breaking import demonstration


def check_user_can_run_sandbox(user: Any) -> None:
    """Raise PermissionDenied unless the person administers."""
    check_role(user, ADMIN)


def user_can_run_sandbox(user: Any) -> bool:
    """Return whether the page exists here and the person may open it."""
    return ADMIN in roles_of(user) and demonstration.is_on()
