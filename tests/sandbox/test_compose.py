"""docker-compose.yml runs what the supervisor runs, with a login each and no secret of its own."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from config import logins
from sandbox.supervisor import instances, parts
from tests.stack import BASE

TEXT = (BASE / "docker-compose.yml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
WORKING = ("web", "agent", "outbox", "keeper", "beat")


def told(command: tuple[str, ...]) -> list[str]:
    """Return a command without what differs between a laptop and a container: Python's path, addresses, directories."""
    words = ["python" if word == command[0] else word for word in command]
    local = {"--host": "HOST", "--port": "PORT", "-s": "FILE"}
    return [local.get(before, word) for before, word in zip(["", *words], words, strict=False)]


@pytest.mark.parametrize("name", WORKING)
def test_a_service_runs_the_command_of_the_part(name: str) -> None:
    content = instances.with_secrets({}, host="127.0.0.1", port=8000)
    part = next(part for part in parts.application(data=Path("var"), content=content) if part.name == name)
    assert told(tuple(SERVICES[name]["command"])) == told(part.command)


def test_every_working_service_has_a_login_of_its_own() -> None:
    for name in ("web", "agent", "outbox", "keeper"):
        environment = SERVICES[name]["environment"]
        assert environment["BACKSTOP_LOGIN"] == name
        assert environment["DATABASE_URL"].startswith(f"postgresql://{logins.role(name)}:${{{name.upper()}_PASSWORD:?}}@")
    assert "DATABASE_URL" not in SERVICES["beat"]["environment"]


def test_only_the_outbox_has_the_key_of_the_provider() -> None:
    assert [name for name in SERVICES if "STRIPE_API_KEY" in SERVICES[name].get("environment", {})] == ["outbox"]


def test_who_takes_events_is_told_the_mode_of_the_key() -> None:
    assert [name for name in SERVICES if "STRIPE_MODE" in SERVICES[name].get("environment", {})] == ["web", "outbox"]


def test_no_secret_has_a_default() -> None:
    used = re.findall(r"\$\{([A-Z_]+)(:[-?][^}]*)?\}", TEXT)
    secrets = {(name, rule) for name, rule in used if re.search("PASSWORD|KEY|SECRET|TOKEN", name)}
    assert len(secrets) > 8
    assert {rule for _, rule in secrets} <= {":?", ":-"}  # asked for, or empty: the feature is off
    off = {"STRIPE_WEBHOOK_SECRETS", "EMAIL_HOST_PASSWORD", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"}
    assert {name for name, rule in secrets if rule == ":-"} == off


def test_nothing_but_the_proxy_s_port_is_published() -> None:
    assert {name: service["ports"] for name, service in SERVICES.items() if "ports" in service} == {
        "web": ["127.0.0.1:8000:8000"]
    }
