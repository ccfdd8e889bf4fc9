"""A process that claims and undoes it, and prints how many pages that looked at: `python -m tests.bench.explain LIMIT`."""

import json
import sys
from typing import Any

import django


def pages(plan: dict[str, Any]) -> int:
    """Return the pages that a node of a plan and all below it looked at."""
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def part(plan: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the node of a named part of the statement."""
    found = [below for below in plan.get("Plans", ()) if below.get("Subplan Name") == name]
    return found[0] if found else next(part(below, name) for below in plan["Plans"])


def main(limit: int) -> None:
    """Claim three times, so that what is cached is, and print the last."""
    from psycopg import sql

    from ledger import connections
    from outbox import backoff, leases

    explained = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ") + leases.CLAIM
    given = {"owner": "bench", "lease": leases.LEASE_SECONDS, "limit": limit, "longest": backoff.CAP}
    given |= {"destinations": ["chat", "email", "stripe"], "rooms": [limit] * 3}
    with connections.pool().connection() as conn:
        for _ in range(3):
            with conn.transaction(force_rollback=True):
                row = conn.execute(explained, given).fetchone()
    connections.pool().close()
    plan = row[0][0]["Plan"] if row else {}
    sys.stdout.write(json.dumps({"claimed": plan["Actual Rows"], "found": pages(part(plan, "CTE due")), "whole": pages(plan)}))


if __name__ == "__main__":
    django.setup()
    main(int(sys.argv[1]))
