"""How many messages a second are settled: claimed, written ahead, sent nowhere, settled with their evidence."""

import json
import statistics
from typing import Any

import psycopg

from tests.bench import places
from tests.bench.places import Place

FILL = """
INSERT INTO public.outbox_message
    (uid, topic, destination, aggregate, dedupe_key, payload, steps, repeat, max_attempts, give_up_at)
SELECT uid, 'bench.nothing', 'nowhere', 'bench:' || n, 'bench:' || n, '{}',
    jsonb_build_array(jsonb_build_object('name', 'nothing', 'method', 'POST', 'path', '/nothing', 'params', '{}'::jsonb,
        'renewable', false, 'key', uid || ':nothing')),
    'keyed', 30, now() + interval '2 d'
FROM (SELECT n, gen_random_uuid() AS uid FROM generate_series(1, %s) AS n) AS made
"""
COUNT = """
SELECT count(*) FROM public.outbox_message m WHERE m.state = 'succeeded' AND m.sends = 1 AND m.attempts = 1
    AND (SELECT count(*) FROM public.outbox_delivery d WHERE d.message_id = m.id AND d.outcome = 'succeeded') = 1
"""


def compare(admin: str, *, messages: int, hands: int, runs: int) -> dict[str, Any]:
    """Return messages a second of ours and of the yardstick, taken in turns; the factor is that of the medians."""
    ours, theirs = [], []
    for run in range(runs):
        with places.place(admin) as place:
            ours.append(_ours(place, messages=messages, hands=hands))
        with places.scratch(admin, f"yardstick_{run}") as address:
            theirs.append(_yardstick(address, messages=messages, hands=hands))
    factor = statistics.median(ours) / statistics.median(theirs)
    return {"what": "settle rate", "messages": messages, "workers": hands, "per_s": ours, "procrastinate_per_s": theirs,
            "factor": round(factor, 2), "bar": 2.5, "fine": factor >= 2.5, **places.durability(admin)}  # fmt: skip


def _ours(place: Place, *, messages: int, hands: int) -> float:
    with psycopg.connect(place.address(), autocommit=True) as conn:
        conn.execute(FILL, (messages,))
        conn.execute("VACUUM ANALYZE public.outbox_message")
        seconds = json.loads(place.run("tests.bench.worker", hands))["seconds"]
        done = conn.execute(COUNT).fetchone()
    if done != (messages,):
        raise RuntimeError(f"{done} of {messages} messages were settled once, with their evidence")
    return round(messages / seconds, 1)


def _yardstick(address: str, *, messages: int, hands: int) -> float:
    printed = Place(admin=address, database="").run("tests.bench.yardstick", address, messages, hands)
    return round(messages / json.loads(printed)["seconds"], 1)
