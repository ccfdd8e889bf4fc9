"""Settings: a missing or wrong value ends the start with one sentence that names it."""

import os
import subprocess
from pathlib import Path

import pytest

from tests import forks

WHOLE = {
    "BACKSTOP_ENV": "production",
    "DJANGO_SECRET_KEY": "not-a-secret",
    "ALLOWED_HOSTS": "backstop.example",
    "DATABASE_URL": "postgresql://backstop_web@/backstop",
    "REDIS_URL": "redis://127.0.0.1:6379/0",
}
SENTENCES = {
    "DJANGO_SECRET_KEY": "DJANGO_SECRET_KEY is not set: give it a long random value.",
    "ALLOWED_HOSTS": "ALLOWED_HOSTS is not set: name the hosts that this installation answers to.",
    "DATABASE_URL": "DATABASE_URL is not set: give the address of PostgreSQL with the login web.",
    "REDIS_URL": "REDIS_URL is not set: give the address of a Redis-compatible broker.",
}


def read(
    values: dict[str, str], *, data: Path, start: tuple[str, ...] = ("manage.py", "diffsettings")
) -> "subprocess.CompletedProcess[str]":
    """Run a command that only reads the settings, in a process that knows nothing but these values."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    env = kept | {"BACKSTOP_DATA": str(data)} | values
    return forks.run(*start, env=env)


def test_it_starts_with_what_production_asks_for(tmp_path: Path) -> None:
    assert "LOGIN = 'web'" in read(WHOLE, data=tmp_path).stdout


@pytest.mark.parametrize("name", SENTENCES)
def test_it_names_what_is_missing(name: str, tmp_path: Path) -> None:
    done = read({key: value for key, value in WHOLE.items() if key != name}, data=tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"{SENTENCES[name]}\n"


@pytest.mark.parametrize(
    "start",
    [
        ("manage.py", "diffsettings"),
        ("-m", "uvicorn", "config.asgi:application", "--port", "0"),
        ("-m", "celery", "-A", "config.celery", "worker"),
    ],
    ids=["a command", "the web server", "a worker"],
)
def test_it_names_all_that_is_missing_at_once(start: tuple[str, ...], tmp_path: Path) -> None:
    done = read({"BACKSTOP_ENV": "production", "DJANGO_SETTINGS_MODULE": "config.settings"}, data=tmp_path, start=start)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-4:] == list(SENTENCES.values())


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("BACKSTOP_POOL_SIZE", "many", "BACKSTOP_POOL_SIZE must be a whole number, not 'many'."),
        ("BACKSTOP_RATES", "stripe:0:5", "BACKSTOP_RATES is destination:messages a minute:messages at once, not 'stripe:0:5'."),
        ("STRIPE_MODE", "production", "STRIPE_MODE must be live or test, not 'production'."),
        ("BEHIND_TLS_PROXY", "perhaps", "BEHIND_TLS_PROXY must be true or false, not 'perhaps'."),
    ],
)
def test_it_names_what_is_wrong(name: str, value: str, sentence: str, tmp_path: Path) -> None:
    assert read(WHOLE | {name: value}, data=tmp_path).stderr == f"{sentence}\n"
