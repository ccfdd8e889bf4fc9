"""Make the people of the demonstration, one for each role, or give them new passwords."""

import json
import os
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction


class Command(BaseCommand):
    help = "Make a person for each entry of BACKSTOP_DEMO_PEOPLE: a JSON list of name, password and role."
    requires_system_checks: list[str] = []

    def handle(self, **options: Any) -> None:
        """Run as web, the login that owns people."""
        if "BACKSTOP_DEMO_PEOPLE" not in os.environ:
            raise CommandError("BACKSTOP_DEMO_PEOPLE is not set.")
        with transaction.atomic():
            for person in json.loads(os.environ["BACKSTOP_DEMO_PEOPLE"]):
                user, _ = User.objects.get_or_create(username=person["name"])
                user.set_password(person["password"])
                user.save()
                user.groups.set([Group.objects.get(name=person["role"])])
