"""What must hold before an agent worker starts: times that fit each other, and no thread of another graph left waiting."""

from typing import Any

import psycopg
from django.conf import settings
from django.core import checks

ORPHANS = "SELECT count(*) FROM public.agent_thread WHERE state <> 'idle' AND graph_version <> %s"
BATCH_SECONDS = 10  # the longest transaction of a batch (agent/preamble.py)


@checks.register("agent")
def check_times(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse leases that could run out under a healthy worker."""
    if settings.LOGIN != "agent":
        return []
    from agent.leases import LOCK_WAIT  # LangGraph comes with it, which no other process needs

    found: list[checks.CheckMessage] = []
    wait = int(LOCK_WAIT.removesuffix("s"))
    if settings.HEARTBEAT_SECONDS + wait >= settings.LEASE_SECONDS:
        found.append(checks.Error("BACKSTOP_HEARTBEAT_SECONDS and a wait for a lock must be less than a lease.", id="agent.E001"))
    if settings.LEASE_SECONDS <= 2 * BATCH_SECONDS:
        found.append(checks.Error(f"BACKSTOP_LEASE_SECONDS must be more than {2 * BATCH_SECONDS}: two batches.", id="agent.E002"))
    return found


@checks.register("agent", "database")
def check_waiting_threads(app_configs: Any, databases: Any = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse to run while threads wait in another version of the graph: their questions would be lost silently."""
    if not databases or settings.LOGIN != "agent":
        return []
    from agent.state import GRAPH_VERSION

    try:
        with psycopg.connect(settings.DATABASE_URL, connect_timeout=10) as conn:
            row = conn.execute(ORPHANS, (GRAPH_VERSION,)).fetchone()
    except psycopg.Error:
        return []  # config.E001 and the migrations say what is wrong with the database
    if row and row[0]:
        sentence = f"{row[0]} conversations wait in another version of the graph. Run that version until they are done."
        return [checks.Error(sentence, id="agent.E003")]
    return []
