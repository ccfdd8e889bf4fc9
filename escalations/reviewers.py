"""Who can be given an escalation."""

from typing import Any

from django import forms
from django.contrib.auth import get_user_model

from ledger.roles import REVIEWER


def others(user: Any) -> list[Any]:
    """Return the active reviewers but one, by name."""
    found = get_user_model().objects.filter(is_active=True, groups__name=REVIEWER).exclude(id=user.id)
    return list(found.order_by("username")[:200])


class ReassignForm(forms.Form):
    """The reviewer who shall have it."""

    to = forms.IntegerField(min_value=1, max_value=2**63 - 1, error_messages={"required": "Choose a reviewer."})
