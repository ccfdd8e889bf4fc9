"""The digest sees everything that a person looked at, and nothing that is made up anew each time. No database."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from agent.digests import Mask, digest

MASKS = {
    "shed": Mask(key="id", generated=("made_at",)),
    "door": Mask(key="id", generated=("made_at",), refers={"shed_id": "shed"}),
    "post": Mask(refers={"shed_id": "shed"}, aggregate="shed"),
}
Row = dict[str, Any]


def change(operation: str, table: str, before: Row | None, after: Row | None, *, call: int = 0) -> Row:
    return {"call_index": call, "table_name": table, "operation": operation, "before": before, "after": after}


def shed(id: int, made_at: str, **values: Any) -> Row:  # noqa: A002
    return {"id": id, "made_at": made_at, "colour": "red", "doors": 1} | values


def door(id: int, shed_id: int, made_at: str, **values: Any) -> Row:  # noqa: A002
    return {"id": id, "shed_id": shed_id, "made_at": made_at, "width": 80} | values


def batch(*, new: int = 7, first: int = 20, at: str = "10:00", **old: Any) -> tuple[list[Row], list[Row]]:
    """Return the effects of a batch: a new shed with two doors, its paint changed, and a door more for an old shed."""
    was = shed(3, "yesterday") | old
    changes = [
        change("INSERT", "shed", None, shed(new, at)),
        change("INSERT", "door", None, door(first, new, at)),
        change("INSERT", "door", None, door(first + 1, new, at, width=90)),
        change("UPDATE", "shed", shed(new, at), shed(new, at, colour="blue"), call=1),
        change("UPDATE", "shed", was, was | {"doors": 2}, call=1),
        change("INSERT", "door", None, door(first + 2, 3, at), call=1),
        change("UPDATE", "shed", was | {"doors": 2}, was | {"doors": 3}, call=2),
    ]
    messages = [
        {"call_index": 1, "topic": "post", "aggregate": f"shed:{new}", "payload": {"shed_id": new, "to": "Ann"}},
        {"call_index": 2, "topic": "post", "aggregate": "shed:3", "payload": {"shed_id": 3, "to": "Ben"}},
    ]
    return changes, messages


def of(effects: tuple[list[Row], list[Row]], masks: Mapping[str, Mask] = MASKS) -> bytes:
    return digest(changes=effects[0], messages=effects[1], masks=masks)


@pytest.mark.parametrize("again", [{"new": 8}, {"first": 400}, {"at": "11:00"}, {"new": 20, "first": 7, "at": "11:11"}], ids=str)
def test_what_is_made_up_says_nothing(again: Row) -> None:
    assert of(batch(**again)) == of(batch())


@pytest.mark.parametrize("old", [{"colour": "green"}, {"made_at": "the day before"}, {"doors": 5}, {"note": "by hand"}], ids=str)
def test_a_row_that_was_there_is_taken_whole(old: Row) -> None:
    assert of(batch(**old)) != of(batch())


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in rows."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    return [path] if items is None else [leaf for key, inner in items for leaf in leaves(inner, (*path, key))]


def masked(path: tuple[Any, ...], changes: list[Row]) -> bool:
    """Return whether the value is made up: the time of anything but what was there before, and names of new rows."""
    number, side, column = path[0], path[1], path[-1]
    row = changes[number]
    if side not in ("before", "after"):
        return False
    if column == "made_at":
        return not (side == "before" and number == 4)
    return (column == "id" and row[side]["id"] != 3) or (column == "shed_id" and row[side]["shed_id"] == 7)


CHANGES, MESSAGES = batch()


@pytest.mark.parametrize("path", [p for p in leaves(CHANGES) if not masked(p, CHANGES) and p[1:] != ("before",)], ids=str)
def test_every_other_value_of_a_change_counts(path: tuple[Any, ...]) -> None:
    changes = copy.deepcopy(CHANGES)
    place: Any = changes
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = "another" if not isinstance(place[path[-1]], int) else place[path[-1]] + 1000
    assert of((changes, MESSAGES)) != of((CHANGES, MESSAGES))


@pytest.mark.parametrize("path", [p for p in leaves(MESSAGES) if p != (0, "payload", "shed_id")], ids=str)
def test_every_value_of_a_message_counts(path: tuple[Any, ...]) -> None:
    messages = copy.deepcopy(MESSAGES)
    place: Any = messages
    for step in path[:-1]:
        place = place[step]
    old = place[path[-1]]
    place[path[-1]] = "shed:99" if path[-1] == "aggregate" else "another" if isinstance(old, str) else old + 1000
    assert of((CHANGES, messages)) != of((CHANGES, MESSAGES))


def test_the_order_in_which_one_statement_writes_says_nothing() -> None:
    changes, messages = batch()
    swapped = [changes[0], changes[2], changes[1], *changes[3:]]
    assert of((swapped, messages[::-1])) == of((changes, messages))


def test_a_new_row_is_not_the_old_one_of_the_same_number() -> None:
    to_new = [change("INSERT", "shed", None, shed(7, "now")), change("INSERT", "door", None, door(1, 7, "now"))]
    to_old = [change("INSERT", "shed", None, shed(8, "now")), change("INSERT", "door", None, door(1, 7, "now"))]
    assert of((to_new, [])) != of((to_old, []))


def test_what_is_added_or_left_out_counts() -> None:
    changes, messages = batch()
    digests = {of((changes[:at] + changes[at + 1 :], messages)) for at in range(len(changes))}
    assert len(digests | {of((changes, messages)), of((changes, messages[:1])), of((changes, []))}) == len(changes) + 3


def test_a_table_that_nobody_declared_is_never_the_same_twice() -> None:
    assert of(batch(), masks={}) != of(batch(new=8), masks={})
