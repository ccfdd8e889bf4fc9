"""Make the database of an instance ready for its processes: logins, tables, grants, people and demo data."""

import json
import threading
from collections.abc import Mapping
from typing import Any

from sandbox.supervisor import databases, environments, instances, steps
from sandbox.supervisor.wishes import Stopped, Wish


class Preparation:
    """Runs management commands, each as the login that it needs. `content` is the instance's, and is kept on disk."""

    def __init__(self, wish: Wish, *, content: dict[str, Any], embedded: bool, stopping: threading.Event) -> None:
        self.wish, self.content, self.embedded, self.stopping = wish, content, embedded, stopping

    def logins(self, admin: str) -> None:
        """Make the five logins with a role that may; nothing to do when all of them can log in."""
        passwords = instances.passwords(self.content)
        urls = {name: databases.as_login(admin, role=f"backstop_{name}", password=passwords[name]) for name in passwords}
        self.content["database"] = urls | ({"superuser": admin} if self.embedded else {})
        instances.remember(self.wish.data, self.content)
        if not all(databases.works(url) for url in urls.values()):
            secrets = {f"BACKSTOP_{name.upper()}_PASSWORD": password for name, password in passwords.items()}
            self._run("make_logins", login="superuser", more=secrets | {"DATABASE_URL": admin})

    def tables(self) -> None:
        """Migrate, grant what config/logins.sql says, and make the coming months' partitions; nothing is done twice."""
        self._run("grant", "--migrate", login="owner")

    def wants_people(self, found: databases.Content) -> bool:
        """Say whether people of the demonstration are to be made; a real database that has people keeps its own."""
        known = instances.read(self.wish.data)["logins"]
        if found.people and not known and not self.embedded:
            self.content["logins"] = []
            return False
        return not known or not found.people.issuperset(login["name"] for login in self.content["logins"])

    def people(self) -> None:
        """Make the people, and only then keep their passwords: a start that was cut off makes them again."""
        self._run("make_demo_people", login="web", more={"BACKSTOP_DEMO_PEOPLE": json.dumps(self.content["logins"])})
        instances.write(self.wish.data, self.content)

    def wants_demo(self, found: databases.Content) -> bool:
        """Say whether the demonstration's customers are to be made; a start that was cut off makes the missing ones."""
        ours = self.embedded or not found.customers
        return ours and not self.content["demo"] and (bool(self.content["stripe"]) or self.wish.demo)

    def demo(self) -> None:
        """Make the demonstration's customers, and tell the story's naive side for the page that compares."""
        self._run("demo", "--story", login="owner")
        self.content["demo"] = True
        instances.remember(self.wish.data, self.content)

    def _run(self, command: str, *words: str, login: str, more: Mapping[str, str] | None = None) -> None:
        environment = environments.for_child(name=command, data=self.wish.data, login=login, given=self.wish.given)
        log = self.wish.data / "logs" / f"{command}.log"
        steps.run(
            command,
            words=words,
            directory=self.wish.directory,
            environment=environment | dict(more or {}),
            log=log,
            stopping=self.stopping.is_set,
        )
        if self.stopping.is_set():
            raise Stopped
