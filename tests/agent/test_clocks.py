"""Workers whose clocks differ: the newest checkpoint is the one with the greatest id, which is made from the time."""

from pathlib import Path
from typing import Any

import pytest

from tests.agent import crashing, stopping
from tests.agent.takeovers import HELD, check, outcomes, script
from tests.agent.talks import Talk

SECONDS = 10.0
POINTS = [
    "batch.release:1",  # inside the batch
    "batch.committed:1",  # it is committed, no checkpoint knows
    "checkpoint.put:4:sleep,checkpoint.writes_done:3",  # the tools node's answers are pending
    "checkpoint.writes:3:sleep,checkpoint.put_done:4",  # they are not, and the next checkpoint is there
    "run.ended:1",
]


def drive(talk: Talk, log: Path, *given: Any, behind: float) -> str:
    """Drive the thread in a process whose clock is behind, and return how that ended."""
    with stopping.worker(talk.thread, *given, log=log, behind=behind) as worker:
        assert worker.ended() == 0, log.read_text()[-2000:]
    assert not worker.logged("agent.run.failed")
    return str(worker.logged("tests.worker.ended")[0]["outcome"])


def shifted(talk: Talk) -> bool:
    """Say whether ids went on from the ahead clock: each checkpoint is newer than its parent."""
    query = "SELECT bool_and(checkpoint_id > parent_checkpoint_id) FROM public.checkpoints WHERE parent_checkpoint_id IS NOT NULL"
    return bool(talk.one(query))


@pytest.mark.parametrize("fault", POINTS)
def test_it_is_finished_once_by_a_worker_whose_clock_is_behind(talk: Talk, tmp_path: Path, fault: str) -> None:
    talk.say("Invoice November, use the credit")
    assert crashing.run(talk.thread, *script(talk), fault=fault) == crashing.KILLED
    talk.expire()
    assert drive(talk, tmp_path / "log", *script(talk), behind=SECONDS) == "idle"
    check(talk)
    assert shifted(talk)
    assert [*outcomes(talk, fence=1), *outcomes(talk, fence=2)].count("committed") == 1


def test_it_goes_back_and_forth_between_clocks_that_differ_by_an_hour(talk: Talk, tmp_path: Path) -> None:
    for number, behind in enumerate((-3600.0, 0.0, 3600.0)):
        talk.say(f"Question {number}")
        answers = [{"text": f"Answer {number}", "calls": []} for number in range(3)]
        assert drive(talk, tmp_path / f"log-{number}", *answers, behind=behind) == "idle"
    texts = [text for number in range(3) for text in (f"Question {number}", f"Answer {number}")]
    assert [text for _, text in talk.texts()] == texts
    assert [text for _, text in talk.transcript()] == texts
    assert shifted(talk)


def test_it_hands_a_decision_over_though_its_clock_is_behind(talk: Talk, tmp_path: Path) -> None:
    talk.web.execute(HELD)
    talk.say("Invoice November, use the credit")
    assert talk.drive(*script(talk)) == "waiting"
    talk.decide("approve")
    assert drive(talk, tmp_path / "log", *script(talk), behind=SECONDS) == "idle"
    check(talk)
    assert talk.escalations() == [("approval", "done")]
