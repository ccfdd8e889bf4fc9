"""Partitions of the coming months."""

from typing import Any

from ledger import partitions


def test_the_keeper_makes_what_is_missing(superuser: Any, keeper: Any) -> None:
    last = superuser.execute(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'public.ledger_row_change'::regclass"
        " ORDER BY 1 DESC LIMIT 1"
    ).fetchone()[0]
    superuser.execute(f"DROP TABLE public.{last}")
    assert partitions.make(keeper) == 1
    assert superuser.execute("SELECT to_regclass(%s)::text", (f"public.{last}",)).fetchone() == (last,)
    assert partitions.make(keeper) == 0
