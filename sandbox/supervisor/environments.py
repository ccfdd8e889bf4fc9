"""The environment of each child: where its instance is and which login it has; secrets only where they are used."""

import os
from collections.abc import Mapping
from pathlib import Path

from outbox import live

# What the machine's own settings are called.
MACHINE = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
# What a person says about this installation; none of it is secret.
INSTALLATION = (
    "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "SECURE_SSL_REDIRECT", "BEHIND_TLS_PROXY", "STRIPE_API_BASE",
    "EMAIL_HOST", "EMAIL_PORT", "EMAIL_HOST_USER", "EMAIL_USE_TLS",
)  # fmt: skip
# Read by the supervisor, or by one part only.
WITHHELD = (
    "DATABASE_URL", "REDIS_URL", "STRIPE_API_KEY", "STRIPE_WEBHOOK_SECRETS", "DJANGO_SECRET_KEY",
    "EMAIL_HOST_PASSWORD", "BACKSTOP_NOTIFY_WEBHOOK",
    "BACKSTOP_DATA", "BACKSTOP_LOGIN", "BACKSTOP_READY_FILE", "BACKSTOP_TEST_DATABASE_URL", "BACKSTOP_FAULT",
)  # fmt: skip
# The provider's real secrets, when they come from the environment.
SECRETS = {
    "web": ("STRIPE_WEBHOOK_SECRETS", "DJANGO_SECRET_KEY"),
    "outbox": ("STRIPE_API_KEY", "STRIPE_WEBHOOK_SECRETS", "EMAIL_HOST_PASSWORD", "BACKSTOP_NOTIFY_WEBHOOK"),
}


def for_child(*, name: str, data: Path, login: str, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of the part `name`: the agent alone also gets what its model's library may read."""
    kept = {key: value for key, value in given.items() if name == "agent" or wanted(key)}
    kept = {key: value for key, value in kept.items() if key not in WITHHELD and not key.startswith("PYTEST_")}
    kept |= {key: given[key] for key in SECRETS.get(name, ()) if key in given}
    if given.get("STRIPE_API_KEY"):  # everybody may know of which mode it is
        kept["STRIPE_MODE"] = live.mode(given["STRIPE_API_KEY"])
    return kept | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "BACKSTOP_DATA": str(data),
        "BACKSTOP_LOGIN": login,
        "BACKSTOP_READY_FILE": str(ready_file(data, name)),
        "PYTHONUNBUFFERED": "1",
    }


def wanted(key: str) -> bool:
    """Say whether every part gets the variable."""
    ours = key.startswith(("LC_", "BACKSTOP_")) and not key.endswith("_PASSWORD")
    return key in MACHINE or key in INSTALLATION or ours


def ready_file(data: Path, name: str) -> Path:
    """Return the file in which a worker writes its pid when it takes work."""
    return data / "run" / name
