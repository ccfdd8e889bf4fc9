"""The instance that may be harmed: the one that `manage.py up` started here with embedded servers. No other, ever.

Its processes are this user's, so they are killed by their numbers; its Stripe sandbox is told by the key in instance.json.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import psycopg
import redis
from django.conf import settings

from sandbox.demo.provider import NoProvider, Provider
from sandbox.servers import identities, postgres, valkey
from sandbox.supervisor import environments, instances
from sandbox.supervisor.records import Record


class CannotStrike(Exception):
    """What should be broken is not there; the text is one sentence."""


def is_on() -> bool:
    """Say whether this process belongs to a demonstration that a supervisor keeps up."""
    if settings.PRODUCTION:
        return False
    found = instances.read(settings.DATA_DIR)
    ours = found.get("database", {}).get(settings.LOGIN) == settings.DATABASE_URL
    return ours and instances.is_embedded(settings.DATA_DIR) and Record.of(settings.DATA_DIR).supervised()


def pid(part: str) -> int | None:
    """Return the number of a part's process, or None while there is none."""
    if part == "postgres":
        return postgres.Server(data=settings.DATA_DIR / part).postmaster()
    if part == "valkey":
        return valkey.Server(data=settings.DATA_DIR / part).pid()
    identity = Record.of(settings.DATA_DIR).children.get(part)
    process = identities.living(identity) if identity else None
    return process.pid if process else None


def kill(part: str) -> int:
    """Kill a part as `kill -9` does and return the number that it had. Raise CannotStrike."""
    found = pid(part)
    try:
        if found is None:
            raise ProcessLookupError
        os.kill(found, signal.SIGKILL)
    except ProcessLookupError:
        raise CannotStrike(f"There is no {part} to kill right now: it is being started again.") from None
    return found


def works(part: str) -> bool:
    """Say whether a worker takes work."""
    number, file = pid(part), environments.ready_file(settings.DATA_DIR, part)
    return number is not None and file.exists() and file.read_text() == str(number)


def alive(number: int) -> bool:
    """Say whether a process has this number."""
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def number_in(owner: str | None) -> int | None:
    """Return the process in the name of a lease's owner, "host:process" with or without more."""
    number = (owner or "").split(":")[1:2]
    return int(number[0]) if number and number[0].isdigit() else None


def connect() -> "psycopg.Connection[Any]":
    """Return a connection of its own as this process's login, which is web: the pool waits long while PostgreSQL is down."""
    return psycopg.connect(settings.DATABASE_URL, autocommit=True, connect_timeout=2)


def database_answers() -> bool:
    """Say whether PostgreSQL takes this process's login."""
    try:
        with connect():
            return True
    except psycopg.OperationalError:
        return False


def broker_answers() -> bool:
    """Say whether the broker answers."""
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5) as client:
            return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


@contextmanager
def provider() -> Iterator[Provider]:
    """Give the Stripe sandbox of the instance. Raise CannotStrike."""
    found = Provider.of_instance(settings.DATA_DIR)
    if found is None:
        raise CannotStrike("This instance has no Stripe sandbox.")
    try:
        yield found
    finally:
        found.close()


def provider_answers() -> bool:
    """Say whether the Stripe sandbox answers."""
    try:
        with provider() as found:
            return bool(found.control("GET", "health"))
    except NoProvider:
        return False
