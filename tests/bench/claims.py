"""How many pages a claim looks at: in an empty table, behind all that is finished, beside all that waits for one invoice.

`found` is what it takes to find and to lock the messages. The rest writes the lease, once in each index: an index of a million
entries is two pages deeper than one of a hundred, whatever is claimed.
"""

import json
from typing import Any

import psycopg

from tests.bench import places
from tests.bench.places import Place

Connection = psycopg.Connection[Any]
LIMIT = 8
DUE = 64
INSERT = """
INSERT INTO public.outbox_message (topic, destination, aggregate, dedupe_key, payload, steps, repeat, state, finished_at, blocked,
    subject, thread, ai_message_id, call_index, next_attempt_at)
SELECT 'payment.charge', 'stripe', coalesce(%(aggregate)s, %(name)s || n), %(name)s || n, '{}', '[]', 'keyed', %(state)s,
    CASE WHEN %(state)s = 'succeeded' THEN now() END, %(aggregate)s IS NOT NULL AND n > 1, n %% 5000,
    CASE WHEN %(state)s = 'succeeded' THEN gen_random_uuid() END, 'ai', 0, now() - interval '1 h' + n * interval '1 ms'
FROM generate_series(1, %(count)s) AS n
"""


def compare(admin: str, *, finished: int, waiting: int) -> dict[str, Any]:
    """Return the pages of a claim of several messages in each of the three tables."""
    with places.place(admin) as place, psycopg.connect(place.address(), autocommit=True) as conn:
        _insert(conn, name="due", count=DUE)
        empty = _explained(place, conn)
        conn.execute("DELETE FROM public.outbox_message")
        _insert(conn, name="finished", count=finished, state="succeeded")
        _insert(conn, name="due", count=DUE)
        behind = _explained(place, conn)
        _insert(conn, name="waiting", count=waiting, aggregate="invoice:1")
        beside = _explained(place, conn)
    factors = {name: round(max(behind[name], beside[name]) / empty[name], 2) for name in ("found", "whole")}
    return {"what": "claim", "empty": empty, f"{finished} finished": behind, f"and {waiting} of one invoice": beside,
            "factor": factors, "bar": 1.2, "fine": factors["found"] <= 1.2}  # fmt: skip


def _insert(conn: Connection, *, name: str, count: int, state: str = "ready", aggregate: str | None = None) -> None:
    conn.execute(INSERT, {"name": name, "count": count, "state": state, "aggregate": aggregate})


def _explained(place: Place, conn: Connection) -> dict[str, int]:
    conn.execute("VACUUM ANALYZE public.outbox_message")
    found: dict[str, int] = json.loads(place.run("tests.bench.explain", LIMIT))
    return found
