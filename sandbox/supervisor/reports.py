"""What `up` and `status` tell about an instance."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sandbox.servers import identities, postgres, valkey
from sandbox.supervisor import instances, parts
from sandbox.supervisor.records import Record


@dataclass(frozen=True)
class Line:
    """One part: `state` is running (it answers), starting (it does not yet) or down."""

    name: str
    state: str
    pid: int | None = None
    restarts: int = 0


def lines(data: Path) -> list[Line]:
    """Return how each part is now; parts that are somebody else's (a real database, a real broker) are not ours to tell."""
    content, record = instances.read(data), Record.of(data)
    if not content:
        return []
    servers = [server_line("postgres", data, record), server_line("valkey", data, record)]
    known = [
        *([parts.stripe(data=data, content=content)] if content["stripe"] else []),
        *parts.application(data=data, content=content),
    ]
    return [*(line for line in servers if line), *(part_line(part, record) for part in known)]


def server_line(name: str, data: Path, record: Record) -> Line | None:
    """Return how an embedded server is; None when this instance has none."""
    if not (data / name).exists():
        return None
    if name == "postgres":
        database = postgres.Server(data=data / name)
        pid, ready = database.postmaster(), database.ready()
    else:
        broker = valkey.Server(data=data / name)
        pid, ready = broker.pid(), broker.ready()
    state = "down" if not pid else "running" if ready else "starting"
    return Line(name=name, pid=pid, state=state, restarts=record.restarts.get(name, 0))


def part_line(part: parts.Part, record: Record) -> Line:
    """Return how one of our processes is."""
    identity = record.children.get(part.name)
    living = identity is not None and identities.living(identity) is not None
    state = "down" if not living or not identity else "running" if part.ready(identity.pid) else "starting"
    return Line(
        name=part.name, state=state, pid=identity.pid if identity and living else None, restarts=record.restarts.get(part.name, 0)
    )


def status(data: Path) -> dict[str, Any]:
    """Return the whole state; `state` is starting, ready, degraded (a part does not work), abandoned or down."""
    content, record, found = instances.read(data), Record.of(data), lines(data)
    state = state_of(record, found)
    return {
        "state": state,
        "data": str(data),
        "address": instances.address(content) if content else None,
        "supervisor": record.supervisor.pid if record.supervisor and record.supervised() else None,
        "parts": [asdict(line) for line in found],
        "settlement": settlement(content),
    }


def state_of(record: Record, found: list[Line]) -> str:
    """Return one word; abandoned means that parts run whose supervisor was killed: `up` or `down` puts that right."""
    if not record.supervised():
        return "abandoned" if any(line.state != "down" for line in found) else "down"
    return "degraded" if record.state == "ready" and any(line.state != "running" for line in found) else record.state


def settlement(content: dict[str, Any]) -> str:
    """Say how outcomes of payments come back."""
    if content.get("stripe"):
        return "Stripe sandbox: webhooks and look-ups."
    if os.environ.get("STRIPE_WEBHOOK_SECRETS"):
        return "Stripe: webhooks at /webhooks/stripe, and look-ups."
    return "Stripe: look-ups alone, because STRIPE_WEBHOOK_SECRETS is not set."


def table(found: dict[str, Any]) -> list[str]:
    """Return the state in lines for a person."""
    head = (
        f"Backstop in {found['data']} is {found['state']}" + (f" at {found['address']}" if found["state"] != "down" else "") + "."
    )
    rows = [
        f"  {part['name']:<10} {part['state']:<9}" + (f" pid {part['pid']}" if part["pid"] else "")
        + (f", restarted {part['restarts']} times" if part["restarts"] else "")
        for part in found["parts"]
    ]  # fmt: skip
    return [head, *rows, f"  {found['settlement']}"]


def welcome(data: Path, *, stop: str) -> list[str]:
    """Return where the instance is, who may log in, and how to stop it."""
    content = instances.read(data)
    people = [f"  {login['role']:<10} {login['name']:<10} {login['password']}" for login in content["logins"]]
    return ["", f"Backstop is at {instances.address(content)}", *(["", "Log in as:", *people] if people else []), "", stop]
