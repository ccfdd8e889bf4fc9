"""`python -m sandbox.offline`: write what the offline model understands to docs/, for people and for programs."""

import json
from pathlib import Path

from sandbox.offline.intents import INTENTS
from sandbox.offline.misbehaviour import FLAWS

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
TEMPLATE = Path(__file__).with_name("offline-model.md")


def listing() -> str:
    """Return the published list as JSON."""
    intents = [{"name": intent.name, "title": intent.title, "example": intent.example} for intent in INTENTS]
    flaws = [{"name": name, "does": does, "write": f"[misbehave: {name}]"} for name, does in FLAWS.items()]
    return json.dumps({"intents": intents, "misbehaviours": flaws}, ensure_ascii=False, indent=2) + "\n"


def page() -> str:
    """Return the same for people: the template with both tables."""
    intents = [f"| {number} | {intent.title} | {intent.example} |" for number, intent in enumerate(INTENTS, 1)]
    flaws = [f"| `[misbehave: {name}]` | {does} |" for name, does in FLAWS.items()]
    return TEMPLATE.read_text().replace("INTENTS", "\n".join(intents)).replace("FLAWS", "\n".join(flaws))


def main() -> None:
    """Write both files."""
    DOCS.mkdir(exist_ok=True)
    (DOCS / "offline-model.json").write_text(listing())
    (DOCS / "offline-model.md").write_text(page())


if __name__ == "__main__":
    main()
