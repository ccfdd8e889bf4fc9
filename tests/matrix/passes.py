"""How often conversations come by each point when nothing is killed: what the cases say must be what is so."""

from collections import Counter

from ledger import faults
from tests.matrix import cases, ends
from tests.matrix.cases import Way
from tests.matrix.instances import Log, Provider
from tests.matrix.talks import LONG, Desk, Talk
from tests.stack import Stack
from tests.waiting import until

PARTS = ("web", "agent", "outbox")
BY_THEMSELVES = frozenset(point for point in faults.BESIDES if not point.startswith("request."))


class _Counting:
    """What the logs of all parts say about one conversation while it goes one way."""

    def __init__(self, stack: Stack, talk: Talk) -> None:
        self.logs, self.thread = [Log(stack, part) for part in PARTS], str(talk.thread)

    def passed(self) -> Counter[str]:
        """Return how often it came by each point; events of the provider are of no thread."""
        lines = [line for log in self.logs for line in log.events("ledger.fault.passed")]
        return Counter(line["point"] for line in lines if line["thread"] in ("", self.thread))


def measure(stack: Stack, desk: Desk) -> dict[Way, Counter[str]]:
    """Let one conversation go each way on an instance that was started armed with `instances.NEVER`, and count."""
    found: dict[Way, Counter[str]] = {}
    provider = Provider(stack)
    said, held = desk.begin("said"), desk.begin("held")
    until(lambda: _quiet(provider, desk, []), seconds=LONG, what="the events about customers")
    for way, talk in (("said", said), ("asked", said), ("held", held), ("approved", held)):
        counting = _Counting(stack, talk)
        talk.way = way
        desk.go_on(talk)
        if way == "held":
            desk.until_asked(talk)
        else:
            until(lambda talk=talk: _ended(provider, desk, talk), seconds=LONG, what="the end")
        last = "request.done" if way == "asked" else "run.released"
        until(lambda counting=counting, last=last: counting.passed()[last], what=last)
        found[way] = counting.passed()
    return found


def _ended(provider: Provider, desk: Desk, talk: Talk) -> bool:
    done = desk.rows("SELECT FROM public.outbox_message WHERE thread = %s AND state = 'succeeded'", talk.thread)
    return bool(done) and _quiet(provider, desk, [talk])


def _quiet(provider: Provider, desk: Desk, talks: list[Talk]) -> bool:
    return not provider.undelivered() and not ends.moving(desk, talks)


def differences(found: dict[Way, Counter[str]]) -> list[str]:
    """Return where the cases say something else than what was counted.

    Payments are followed on one way only. What happens at its time, such as a scan, may happen meanwhile.
    """
    return [
        f"{way} comes by {point} {counted[point]} times, not {cases.PASSED[way].get(point, 0)}"
        for way, counted in found.items()
        for point in sorted(counted.keys() | cases.PASSED[way].keys())
        if counted[point] != cases.PASSED[way].get(point, 0) and (way == "said" or not cases.is_payment(point))
        if point not in BY_THEMSELVES
    ]
