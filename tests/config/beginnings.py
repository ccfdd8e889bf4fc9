"""Processes at the moment that they say they are ready, and what they have by then."""

import asyncio
import json
import os
import sys
from pathlib import Path


def connected() -> dict[str, bool]:
    """Return which connections of this process stand."""
    from celery import current_app

    from agent import events
    from ledger import connections

    with current_app.producer_or_acquire() as producer:
        bell = bool(producer.connection.connected)
    opened = connections._pool.cache_info().currsize > 0 and connections.pool().get_stats()["pool_size"] > 0
    return {"pool": opened, "bell": bell, "events": bool(events.broker().connection_pool._available_connections)}


def worker(said: Path) -> None:
    """Be a Celery worker from its first moment to that at which it takes work."""
    from celery.signals import worker_init, worker_ready

    from config.celery import app

    app.loader.import_default_modules()
    worker_init.send(sender=None)
    worker_ready.send(sender=None)
    written = Path(os.environ["BACKSTOP_READY_FILE"]).read_text() == str(os.getpid())
    said.write_text(json.dumps(connected() | {"ready": written, "pages": "config.urls" in sys.modules} | _made()))


def _made() -> dict[str, bool]:
    if os.environ["BACKSTOP_LOGIN"] == "outbox":
        from ledger import wiring

        return {"plugged": wiring.plugged_all.cache_info().currsize > 1}
    from agent import graph, llm, prompt

    return {f.__name__: f.cache_info().currsize > 0 for f in (graph.compiled, llm.installed, llm._schema, prompt.system)}


def web(said: Path) -> None:
    """Be a web process that its server tells to start up, and to shut down."""
    from config.asgi import application

    told, answers = iter(["lifespan.startup", "lifespan.shutdown"]), []

    async def receive() -> dict[str, str]:
        return {"type": next(told)}

    async def send(message: dict[str, str]) -> None:
        answers.append(message["type"])

    asyncio.run(application({"type": "lifespan"}, receive, send))
    said.write_text(json.dumps(connected() | {"answers": answers}))
