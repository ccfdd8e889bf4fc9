"""Who may do what with conversations: `check_user_can_x` raises PermissionDenied, `user_can_x` asks."""

from typing import Any

from ledger.roles import ADMIN, REVIEWER, SUPPORT, check_role, roles_of


def check_user_can_read(user: Any) -> None:
    """Conversations are open to everybody who has a role."""
    check_role(user, SUPPORT, REVIEWER, ADMIN)


def user_can_read(user: Any) -> bool:
    """Return whether the person may read conversations."""
    return bool(roles_of(user) & {SUPPORT, REVIEWER, ADMIN})


def check_user_can_talk(user: Any) -> None:
    """Only support staff start conversations, write in them, and stop the agent."""
    check_role(user, SUPPORT)


def user_can_talk(user: Any) -> bool:
    """Return whether the person may write."""
    return SUPPORT in roles_of(user)


def check_user_can_resume(user: Any) -> None:
    """Whoever may read a conversation may ask for it to go on; nothing happens that would not happen anyway."""
    check_role(user, SUPPORT, REVIEWER, ADMIN)


def user_can_resume(user: Any) -> bool:
    """Return whether the person may ask a halted conversation to go on."""
    return user_can_read(user)


def check_user_can_step_in(user: Any) -> None:
    """Support staff and reviewers answer in the agent's place."""
    check_role(user, SUPPORT, REVIEWER)


def user_can_step_in(user: Any) -> bool:
    """Return whether the person may answer in the agent's place."""
    return bool(roles_of(user) & {SUPPORT, REVIEWER})


def check_user_can_hand_back(user: Any) -> None:
    """Whoever stepped in hands back; that it is their own is for the verb to say, unless it may be anybody's."""
    check_role(user, SUPPORT, REVIEWER, ADMIN)


def user_can_hand_back_for_others(user: Any) -> bool:
    """Return whether the person may hand back for somebody who has left: reviewers and admins."""
    return bool(roles_of(user) & {REVIEWER, ADMIN})


def check_user_can_undo(user: Any) -> None:
    """Support staff and admins take back what was not sent yet; of which conversations is for `conversations.can_undo`."""
    check_role(user, SUPPORT, ADMIN)


def user_can_undo(user: Any) -> bool:
    """Return whether the person may, in some conversation."""
    return bool(roles_of(user) & {SUPPORT, ADMIN})


def check_user_can_set_limits(user: Any) -> None:
    """Only admins pause writes and set limits."""
    check_role(user, ADMIN)


def user_can_set_limits(user: Any) -> bool:
    """Return whether the person may pause writes and set limits."""
    return ADMIN in roles_of(user)


def user_can_see_evidence(user: Any) -> bool:
    """Return whether the person sees SQLSTATE, constraint and table: reviewers and admins."""
    return bool(roles_of(user) & {REVIEWER, ADMIN})
