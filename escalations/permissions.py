"""Who may read, claim and decide. Support staff only learn in the conversation that a person will look."""

from typing import Any

from escalations import conversations
from escalations.models import Escalation
from ledger.roles import ADMIN, REVIEWER, SUPPORT, check_role, roles_of


def check_user_can_read(user: Any) -> None:
    """Raise PermissionDenied unless the person reviews, or administers and looks on."""
    check_role(user, REVIEWER, ADMIN)


def user_can_read(user: Any) -> bool:
    """Return whether the person may open the desk."""
    return bool(roles_of(user) & {REVIEWER, ADMIN})


def check_user_can_claim(user: Any) -> None:
    """Raise PermissionDenied unless the person reviews."""
    check_role(user, REVIEWER)


def check_user_can_decide(user: Any) -> None:
    """Raise PermissionDenied unless the person reviews; an admin never decides."""
    check_role(user, REVIEWER)


def user_can_decide(user: Any) -> bool:
    """Return whether the person may claim and decide."""
    return REVIEWER in roles_of(user)


def check_user_can_scan(user: Any) -> None:
    """Raise PermissionDenied unless the person may have everything compared, which changes nothing."""
    check_role(user, REVIEWER, ADMIN)


def user_can_scan(user: Any) -> bool:
    """Return whether the person may."""
    return bool(roles_of(user) & {REVIEWER, ADMIN})


def check_user_can_withdraw(user: Any) -> None:
    """Raise PermissionDenied unless the person is support staff; that it is their own request is for the verb to say."""
    check_role(user, SUPPORT)


def user_can_approve(user: Any, escalation: Escalation) -> bool:
    """Return whether four eyes would see it: nobody approves what they asked for, or what the agent made of their answer."""
    return user_can_decide(user) and not (user_has_asked(user, escalation) or user_has_answered(user, escalation))


def user_has_asked(user: Any, escalation: Escalation) -> bool:
    """Return whether the person asked for it (`rows.has_asked` says it to the verb)."""
    return escalation.requested_by == user.id or bool(conversations.written_in([escalation.thread], user=user.id))


def user_has_answered(user: Any, escalation: Escalation) -> bool:
    """Return whether the agent proposes it on the person's answer (`rows.has_answered` says it to the verb)."""
    return bool(conversations.led_by([escalation.thread], user=user.id))
