"""How long after its commit a charge's first request reaches the provider, when a bell is rung."""

import json
import statistics
from typing import Any

from tests.bench import places

P50, P99 = 50, 250  # milliseconds


def measure(admin: str, *, charges: int) -> dict[str, Any]:
    """Return the median and the 99th percentile in milliseconds."""
    with places.place(admin) as place:
        more = {"BENCH_OUTBOX": place.address("outbox"), "BENCH_OWNER": place.address("owner")}
        found = sorted(json.loads(place.run("tests.bench.trips", charges, login="agent", **more)))
    p50, p99 = statistics.median(found), found[int(len(found) * 0.99) - 1]
    return {"what": "commit to request", "charges": charges, "p50_ms": round(p50, 1), "p99_ms": round(p99, 1),
            "max_ms": round(found[-1], 1), "bar": [P50, P99], "fine": p50 < P50 and p99 < P99}  # fmt: skip
