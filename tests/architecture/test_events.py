"""Log events: named `app.noun.past_tense`, and listed with what they say."""

import ast
import re
from collections.abc import Iterator

from tests.architecture import sources

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
NAME = re.compile(r"[a-z]+(?:\.[a-z_]+){2}")
IRREGULAR = {"broke", "kept", "left", "lost", "made", "set", "swept", "unheard", "unknown", "untold"}
LISTED = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


def logged() -> Iterator[tuple[str, ast.expr]]:
    """Yield the app and the event of every line that the apps log; the sandbox's own server is no part of them."""
    for source in sources.ours():
        if source.name.startswith("sandbox/stripe/"):
            continue
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args and _logs(node.func):
                yield source.app, node.args[0]


def _logs(called: ast.Attribute) -> bool:
    on_log = isinstance(called.value, ast.Name) and called.value.id == "log" and called.attr in LEVELS
    return on_log or called.attr == "log"  # the second: agent.recording.Record.log


def names() -> set[str]:
    """Return every event's name; one of two, chosen where it is logged, counts as both."""
    found = set()
    for _, event in logged():
        for part in (event.body, event.orelse) if isinstance(event, ast.IfExp) else (event,):
            if isinstance(part, ast.Constant):
                found.add(part.value)
    return found


def test_every_event_is_named_where_it_is_logged() -> None:
    allowed = (ast.Constant, ast.IfExp)
    assert [ast.unparse(event) for _, event in logged() if not isinstance(event, allowed) and ast.unparse(event) != "event"] == []


def test_every_event_has_its_apps_name_and_the_form_of_a_name() -> None:
    assert {name for name in names() if not NAME.fullmatch(name)} == set()
    for app, event in logged():
        assert not isinstance(event, ast.Constant) or event.value.startswith(f"{app}.")


def test_every_event_says_what_has_happened() -> None:
    said = {name: name.rpartition(".")[2].split("_") for name in names()}
    assert [name for name, words in said.items() if not any(word.endswith("ed") or word in IRREGULAR for word in words)] == []


def test_the_list_and_the_code_agree() -> None:
    listed = LISTED.findall((sources.ROOT / "docs" / "events.md").read_text())
    assert listed == sorted(listed)
    assert set(listed) == names()
