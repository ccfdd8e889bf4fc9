"""The naive story as it was last told here: a file in the data directory, because the web login may not make schemas."""

import dataclasses
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.cards import Card
from agent.feeds import Item, Part
from agent.lines import Line
from ledger.marks import Mark
from sandbox.story.script import Counts, Telling

NAME = "story-naive.json"


def save(telling: Telling, *, directory: Path) -> Path:
    """Write the telling, in one move, and return where."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / NAME
    new = path.with_suffix(".new")
    new.write_text(as_json(telling))
    os.replace(new, path)
    return path


def load(*, directory: Path) -> Telling | None:
    """Return the telling that was saved last, or None when there is none."""
    try:
        found = json.loads((directory / NAME).read_text())
    except FileNotFoundError:
        return None
    return Telling(
        message=found["message"],
        at=datetime.fromisoformat(found["at"]),
        items=[_item(item) for item in found["items"]],
        counts=Counts(**found["counts"]),
    )


def as_json(telling: Telling) -> str:
    """Return a telling as JSON."""
    return json.dumps(dataclasses.asdict(telling), default=_plain, ensure_ascii=False, indent=1) + "\n"


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _item(found: dict[str, Any]) -> Item:
    parts = [Part(text=part["text"], card=_card(part["card"]) if part["card"] else None) for part in found["parts"]]
    return Item(**{**found, "at": datetime.fromisoformat(found["at"]), "parts": parts})


def _card(found: dict[str, Any]) -> Card:
    lines = tuple(
        Line(number=line["number"], sentence=line["sentence"], mark=Mark(**line["mark"]), why=line["why"])
        for line in found["lines"]
    )
    return Card(mark=Mark(**found["mark"]), says=found["says"], lines=lines, at=None)
