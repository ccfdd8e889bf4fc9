"""Partitions of the coming months."""

from typing import Any

import pytest
from psycopg.errors import InsufficientPrivilege

from ledger import partitions


def test_the_keeper_makes_what_is_missing(superuser: Any, keeper: Any) -> None:
    partitions.make(keeper)  # a month may have begun since the template was made
    last = superuser.execute(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'public.ledger_row_change'::regclass"
        " ORDER BY 1 DESC LIMIT 1"
    ).fetchone()[0]
    superuser.execute(f"DROP TABLE public.{last}")
    assert partitions.make(keeper) == 1
    assert superuser.execute("SELECT to_regclass(%s)::text", (f"public.{last}",)).fetchone() == (last,)
    assert partitions.make(keeper) == 0


@pytest.mark.parametrize("table", ["ledger_row_change", "outbox_delivery"])
@pytest.mark.parametrize("verb", ["DELETE FROM", "TRUNCATE"])
def test_a_months_part_cannot_be_changed_by_its_own_name_either(superuser: Any, owner: Any, table: str, verb: str) -> None:
    found = superuser.execute(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", (f"public.{table}",)
    ).fetchall()
    assert len(found) >= 5
    for (part,) in found:
        with pytest.raises(InsufficientPrivilege, match="is append-only"):
            owner.execute(f"{verb} public.{part}")
