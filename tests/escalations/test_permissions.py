"""Who may do what at the desk: role by role."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied

from escalations import permissions
from escalations.models import Escalation
from tests.escalations.scenes import person

READ, CLAIM, DECIDE = permissions.check_user_can_read, permissions.check_user_can_claim, permissions.check_user_can_decide


@pytest.mark.parametrize(
    ("roles", "allowed"),
    [
        ((), set()),
        (("support",), set()),
        (("admin",), {READ}),
        (("reviewer",), {READ, CLAIM, DECIDE}),
        (("support", "reviewer"), {READ, CLAIM, DECIDE}),
    ],
)
def test_each_role_may_do_its_part(database: None, roles: tuple[str, ...], allowed: set[Callable[[Any], None]]) -> None:
    user = person("somebody", *roles)
    for check in (READ, CLAIM, DECIDE):
        try:
            check(user)
        except PermissionDenied:
            assert check not in allowed
        else:
            assert check in allowed
    assert permissions.user_can_read(user) == (READ in allowed)
    assert permissions.user_can_decide(user) == (DECIDE in allowed)


def test_a_person_who_was_deactivated_may_do_nothing(database: None) -> None:
    user = person("somebody", "reviewer")
    user.is_active = False
    assert not permissions.user_can_decide(user)


def test_four_eyes_are_two_people(database: None) -> None:
    user = person("somebody", "reviewer")
    assert permissions.user_can_approve(user, Escalation(requested_by=user.id + 1))
    assert permissions.user_can_approve(user, Escalation(requested_by=None))
    assert not permissions.user_can_approve(user, Escalation(requested_by=user.id))
    assert not permissions.user_can_approve(person("boss", "admin"), Escalation(requested_by=user.id))
