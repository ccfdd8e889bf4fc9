"""People of a real installation are made on the command line."""

from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import RequestFactory


def made(name: str, role: str) -> str:
    """Make a person and return the password that was printed."""
    out = StringIO()
    call_command("make_person", name, role=role, stdout=out)
    return out.getvalue().strip().rpartition(" ")[2]


def test_a_person_can_log_in_with_what_was_printed(database: None) -> None:
    password = made("ann", "reviewer")
    assert authenticate(RequestFactory().post("/login/"), username="ann", password=password)
    assert [group.name for group in User.objects.get(username="ann").groups.all()] == ["reviewer"]


def test_making_a_person_again_changes_role_and_password(database: None) -> None:
    before = made("ann", "reviewer")
    assert made("ann", "support") != before
    assert [group.name for group in User.objects.get(username="ann").groups.all()] == ["support"]


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(CommandError, match="invalid choice: 'boss'"):
        call_command("make_person", "ann", "--role", "boss")
