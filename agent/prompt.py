"""What the model is told before the conversation: a versioned text and the facts of today and of this customer."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

SYSTEM = Path(__file__).with_name("prompts") / "system.md"


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt's text and the version that evidence names."""

    version: str
    text: str

    def with_facts(self, lines: Iterable[str], *, today: date) -> str:
        """Return the whole system prompt. What changes comes last, so that a provider can cache what does not."""
        return "\n".join([self.text, "", "Facts", *lines, f"today: {today.isoformat()}"])


@cache
def system() -> Prompt:
    """Return the system prompt; its file begins with a line `version: …`."""
    header, _, text = SYSTEM.read_text().partition("\n")
    name, _, version = header.partition(":")
    if name != "version" or not version.strip():
        raise ValueError(f"{SYSTEM.name} must begin with a line such as “version: 1”.")
    return Prompt(version=f"{SYSTEM.stem} {version.strip()}", text=text.strip())
