"""Make a person who may log in, or give one another role or a new password."""

import secrets
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management.base import BaseCommand
from django.db import transaction

from ledger import roles


class Command(BaseCommand):
    help = "Make a person with one role and print a new password for them."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Say who."""
        parser.add_argument("name")
        parser.add_argument("--role", required=True, choices=[roles.SUPPORT, roles.REVIEWER, roles.ADMIN])

    @transaction.atomic
    def handle(self, *, name: str, role: str, **options: Any) -> None:
        """Run as web, the login that owns people."""
        password = secrets.token_urlsafe(15)
        user, _ = User.objects.get_or_create(username=name)
        user.set_password(password)
        user.save()
        user.groups.set([Group.objects.get(name=role)])
        self.stdout.write(f"{name} ({role}): {password}")
