"""A process that commits charges and rings, one after the other, beside a real worker and a provider that notes what arrives.

`python -m tests.bench.trips CHARGES` prints the milliseconds from each commit to its request.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import django

from sandbox.servers import valkey
from sandbox.stripe import __main__ as stripe
from sandbox.stripe.exchange import Call
from sandbox.stripe.server import Handler
from tests.outbox.provider import API_KEY, Provider

UID = re.compile(rb"backstop_uid(?:%5D|\])=([0-9a-f-]{36})")
WORKER = "worker -P threads -c 8 -Q outbox --without-gossip --without-mingle -l WARNING"
WARM = 5  # charges before those that are measured: connections are made, code is imported


class Arrivals:
    """When the first request of each message came."""

    def __init__(self) -> None:
        self._times: dict[UUID, float] = {}
        self._came = threading.Condition()

    def note(self, call: Call) -> None:
        """Keep the time if the call is the first of its message."""
        if call.method == "POST" and (found := UID.search(call.body)):
            with self._came:
                self._times.setdefault(UUID(found[1].decode()), time.perf_counter())
                self._came.notify_all()

    def wait(self, uid: UUID, *, seconds: float = 30) -> float:
        """Return when the message's request came; raises TimeoutError."""
        with self._came:
            if not self._came.wait_for(lambda: uid in self._times, seconds):
                raise TimeoutError(uid)
            return self._times[uid]


@contextmanager
def provider(folder: Path, arrivals: Arrivals) -> Iterator[str]:
    """Serve the Stripe sandbox from this process, and return its address."""

    class Noting(Handler):
        def _read(self) -> Call:
            call = super()._read()
            arrivals.note(call)
            return call

    given = argparse.Namespace(
        data=folder,
        host="127.0.0.1",
        port=0,
        webhook_url="",
        webhook_secret="",
        api_key=API_KEY,
    )
    listening, threads = stripe.assemble(given)
    listening.RequestHandlerClass = Noting
    for thread in (*threads, threading.Thread(target=listening.serve_forever, daemon=True)):
        thread.start()
    yield f"http://127.0.0.1:{listening.server_port}"
    listening.shutdown()
    for ticker in threads:
        ticker.stop()


@contextmanager
def worker(address: str, base: str) -> Iterator[None]:
    """Run the outbox's worker as an installation does."""
    login = {"BACKSTOP_LOGIN": "outbox", "DATABASE_URL": address, "STRIPE_API_BASE": base, "STRIPE_API_KEY": API_KEY}
    command = [sys.executable, "-m", "celery", "-A", "config.celery", *WORKER.split()]
    process = subprocess.Popen(command, env=os.environ | login, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    yield
    process.terminate()
    process.wait(30)


def measured(owner: Any, agent: Any, arrivals: Arrivals, base: str, charges: int) -> list[float]:
    """Return the milliseconds from commit to request of each charge."""
    from outbox import bell
    from tests.billing import makers
    from tests.outbox.desk import Desk

    desk = Desk(owner=owner, agent=agent, pool=None, provider=Provider(base), customer=makers.make_customer(owner))  # type: ignore[arg-type]
    desk.card("pm_card_visa")
    found = []
    for number in range(WARM + charges):
        message = desk.charge()  # committed when it returns, a look at its row later
        committed = time.perf_counter()
        bell.ring("outbox.deliver")
        arrived = arrivals.wait(message["uid"])
        if number >= WARM:
            found.append(1000 * (arrived - committed))
    return found


def main(charges: int) -> None:
    """Start what is needed, measure, and print."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="backstop-bench-")))
        broker = valkey.Server(data=folder / "valkey")
        broker.start()
        stack.callback(broker.stop)
        os.environ["REDIS_URL"] = broker.url()
        django.setup()
        import psycopg

        import config.celery  # noqa: F401 - so that bells are rung where the worker listens

        arrivals = Arrivals()
        base = stack.enter_context(provider(folder / "stripe", arrivals))
        stack.enter_context(worker(os.environ["BENCH_OUTBOX"], base))
        owner, agent = (
            stack.enter_context(psycopg.connect(os.environ[name], autocommit=True)) for name in ("BENCH_OWNER", "DATABASE_URL")
        )
        sys.stdout.write(json.dumps(measured(owner, agent, arrivals, base, charges)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
