"""Who may read the trail. SQLSTATE, constraints and driver text are in it, so support staff may not."""

from typing import Any

from ledger.roles import ADMIN, REVIEWER, check_role, roles_of


def check_user_can_read_trail(user: Any) -> None:
    """Raise PermissionDenied unless the person reviews or administers."""
    check_role(user, REVIEWER, ADMIN)


def user_can_read_trail(user: Any) -> bool:
    """Return whether the person may."""
    return bool(roles_of(user) & {REVIEWER, ADMIN})
