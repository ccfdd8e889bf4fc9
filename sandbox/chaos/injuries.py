"""Carrying out the faults of a plan, at their times, on the processes of one instance."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import psutil
import psycopg
import redis

from sandbox.chaos.places import Place
from sandbox.chaos.spares import Spare
from sandbox.chaos.strikes import PARTS, PAUSES, SPARE, Strike
from sandbox.supervisor import environments, injections, parts

# Seconds after which a part works that does not say so in a file.
AGES = {"web": 6.0, "stripe": 3.0, "postgres": 3.0, "valkey": 1.0}
# What is killed instead of a part that is still coming up; PostgreSQL last, because nothing works without it.
INSTEAD = ("valkey", "stripe", "keeper", "beat", SPARE, "outbox", "agent", "web", "postgres")
LONGEST = max(end for _, end in PAUSES.values())  # seconds that anything stands still
TERMINATE = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"


class Injuries:
    """The faults that were done; `done` counts by kind, `kills` by part, `missed` what found nothing to hit."""

    def __init__(self, place: Place, spare: Spare, *, hit: Sequence[str]) -> None:
        self._place, self._spare, self._parts = place, spare, hit
        self.done: Counter[str] = Counter()
        self.kills: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self._over = threading.Event()
        self._stopped: dict[psutil.Process, float] = {}  # when to let it go on
        self._kinds: Mapping[str, Callable[[Strike], bool]] = {
            "kill": self._kill_one,
            "immediate": lambda strike: self._kill(strike.part, signal.SIGQUIT),  # PostgreSQL's word for an immediate shutdown
            "point": self._arm,
            "pause": self._pause,
            "end": lambda strike: self._signal(strike.part, signal.SIGTERM),
            "terminate": self._terminate,
            "flush": self._flush,
            "provider": lambda strike: self._place.sandbox("POST", "faults", strike.wish) is not None,
            "webhooks": lambda strike: self._place.sandbox("POST", "webhooks", strike.wish) is not None,
            "clock": lambda strike: self._place.sandbox("POST", "clock", strike.wish) is not None,
        }

    def run(self, strikes: Sequence[Strike]) -> None:
        """Do everything at its time, and return after the last one."""
        began = time.monotonic()
        for strike in strikes:
            while (left := began + strike.at - time.monotonic()) > 0:
                time.sleep(min(left, 0.5))
                self.let_go_on()
            hit = self._kinds[strike.kind](strike)
            (self.done if hit else self.missed)[strike.kind] += 1

    def lift(self) -> bool:
        """End every fault that lasts, and say whether the sandbox heard of it."""
        for part in PARTS:
            injections.disarm(self._place.data, part=part)
        self.let_go_on(all_of_them=True)
        lifted = self._place.sandbox("DELETE", "faults") is not None
        return self._place.sandbox("POST", "webhooks", {"action": "normal"}) is not None and lifted

    def let_go_on(self, *, all_of_them: bool = False) -> None:
        """Let processes go on whose time is over; those that stopped themselves at a point have theirs from when it is seen."""
        for part in PARTS:
            process = self._process(part)
            if process and _status(process) == psutil.STATUS_STOPPED:
                self._stopped.setdefault(process, time.monotonic() + PAUSES.get(part, (0, LONGEST))[1])
        due = [process for process, at in self._stopped.items() if all_of_them or at <= time.monotonic()]
        for process in due:
            del self._stopped[process]
            _send(process, signal.SIGCONT)

    def _process(self, part: str) -> psutil.Process | None:
        return self._spare.process() if part == SPARE else self._place.process(part)

    def _signal(self, part: str, number: signal.Signals) -> bool:
        process = self._process(part)
        return process is not None and _send(process, number)

    def _kill(self, part: str, number: signal.Signals = signal.SIGKILL) -> bool:
        if not self._signal(part, number):
            return False
        self.kills[part] += 1
        return True

    def _kill_one(self, strike: Strike) -> bool:
        """Kill the part, or while that one is still coming up another one that works: who never works shows nothing."""
        working = (part for part in (strike.part, *INSTEAD) if part in self._parts and self._works(part))
        return self._kill(next(working, strike.part))

    def _arm(self, strike: Strike) -> bool:
        """Kill a part that starts again with a fault: it comes by the point later."""
        if not self._works(strike.part):
            return self._kill_one(strike)
        injections.arm(self._place.data, part=strike.part, fault=strike.fault)
        return self._kill(strike.part)

    def _works(self, part: str) -> bool:
        process = self._process(part)
        if process is None:
            return False
        if part in AGES:
            return time.time() - process.create_time() > AGES[part]
        return parts.wrote(environments.ready_file(self._place.data, part))(process.pid)

    def _pause(self, strike: Strike) -> bool:
        process = self._process(strike.part)
        if process is None or not _send(process, signal.SIGSTOP):
            return False
        self._stopped[process] = time.monotonic() + strike.seconds
        return True

    def _terminate(self, strike: Strike) -> bool:
        try:
            with self._place.connect("superuser") as conn:
                conn.execute(TERMINATE)
        except psycopg.OperationalError:
            return False
        return True

    def _flush(self, strike: Strike) -> bool:
        try:
            with redis.Redis.from_url(self._place.content["broker"], socket_timeout=2, socket_connect_timeout=2) as client:
                client.flushall()
        except redis.RedisError:
            return False
        return True


def _send(process: psutil.Process, number: signal.Signals) -> bool:
    """Signal a process, never one that has got its pid since."""
    try:
        process.send_signal(number)
    except psutil.Error:
        return False
    return True


def _status(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.Error:
        return ""
