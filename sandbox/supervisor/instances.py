"""What an instance is made of: its addresses, its secrets and its first people, kept in instance.json."""

import secrets
import socket
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from sandbox.servers import CannotStart
from sandbox.supervisor import files

LOGINS = ("owner", "web", "agent", "outbox", "keeper")
# Two sign what is large, and two loosen a limit: so there are two of those who may.
PEOPLE = {"support": "support", "reviewer": "reviewer", "admin": "admin", "reviewer2": "reviewer", "admin2": "admin"}
PORT = 8000
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is taken for another

Content = dict[str, Any]


def read(data: Path) -> Content:
    """Return the instance of a data directory, or an empty mapping before its first start."""
    return files.read(data / "instance.json")


def write(data: Path, content: Content) -> None:
    """Keep the instance for its owner only."""
    files.write(data / "instance.json", content)


def is_embedded(data: Path) -> bool:
    """Say whether database, broker and provider are the instance's own: only such a one may be harmed."""
    found = read(data)
    return "superuser" in found.get("database", {}) and (data / "valkey").exists() and bool(found.get("stripe"))


def remember(data: Path, content: Content) -> None:
    """Keep the instance but for its people, who stay those that exist already."""
    write(data, content | {"logins": read(data).get("logins", [])})


def password() -> str:
    """Return a new password of about 59 bits that can be typed."""
    return "-".join("".join(secrets.choice(LETTERS) for _ in range(4)) for _ in range(3))


def with_secrets(content: Content, *, host: str, port: int) -> Content:
    """Return the content with every secret that it did not have yet, for a web server at this address."""
    return {
        "secret_key": content.get("secret_key") or secrets.token_urlsafe(50),
        "database": content.get("database", {}),
        "broker": content.get("broker", ""),
        "stripe": content.get("stripe", {}),
        "web": {"host": host, "port": port},
        "demo": content.get("demo", False),
        "logins": people(content),
    }


def people(content: Content) -> list[dict[str, str]]:
    """Return the demonstration's people, with the passwords that they had; an older instance gets those that it lacks."""
    known = content.get("logins") or []
    names = {login["name"] for login in known}
    return known + [{"name": name, "password": password(), "role": role} for name, role in PEOPLE.items() if name not in names]


def passwords(content: Content) -> dict[str, str]:
    """Return the password of each database login: the one that it had, or a new one."""
    known = {login: conninfo_to_dict(url).get("password") for login, url in content.get("database", {}).items()}
    return {login: str(known.get(login) or secrets.token_urlsafe(24)) for login in LOGINS}


def stripe(content: Content) -> Content:
    """Return where the Stripe sandbox listens and its keys; they stay the same from start to start."""
    known = content.get("stripe") or {}
    base = known.get("api_base", "")
    port = int(base.rpartition(":")[2]) if base and port_is_free("127.0.0.1", int(base.rpartition(":")[2])) else free_port()
    return {
        "api_base": f"http://127.0.0.1:{port}",
        "api_key": known.get("api_key") or f"sk_test_{secrets.token_hex(16)}",
        "webhook_secret": known.get("webhook_secret") or f"whsec_{secrets.token_hex(24)}",
    }


def free_port() -> int:
    """Return a port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_is_free(host: str, port: int) -> bool:
    """Say whether a server could listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def check_port(host: str, port: int) -> None:
    """Refuse a port that somebody else uses."""
    if not port_is_free(host, port):
        raise CannotStart(f"Port {port} of {host} is taken or not allowed: choose another one with --port.")


def address(content: Content) -> str:
    """Return where a browser finds the instance."""
    host = content["web"]["host"]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104  # any address
    return f"http://{shown}:{content['web']['port']}"
