"""Conversations that the ledger, or everybody, has left behind."""

from collections.abc import Mapping

from tests.agent import crashing
from tests.agent.crashing import KILLED
from tests.agent.takeovers import script
from tests.outbox.reconciled.worlds import Scenario, World


def _ended(world: World) -> None:
    talk = world.talks()
    assert talk.drive(*script(talk)) == "idle"


def _untold(world: World) -> str:
    [(message,)] = world.talk.rows("SELECT DISTINCT ai_message_id FROM public.ledger_execution")
    return f"untold:{world.talk.thread}:{message}"


def untold(world: World) -> str:
    _ended(world)
    world.an_hour_later("DELETE FROM public.agent_transcript_entry WHERE role = 'tool'")
    return _untold(world)


def no_thread(world: World) -> str:
    _ended(world)
    world.an_hour_later("DELETE FROM public.agent_transcript_entry WHERE role = 'tool'", "DELETE FROM public.agent_thread")
    return _untold(world)


def halted(world: World, state: str = "stuck") -> str:
    _ended(world)
    world.an_hour_later(f"UPDATE public.agent_thread SET state = '{state}'")
    return f"halted:{world.talk.thread}"


def left_open(world: World) -> str:
    talk = world.talks()
    assert crashing.run(talk.thread, *script(talk), fault="batch.commit:1") == KILLED
    world.an_hour_later("UPDATE public.agent_thread SET state = 'idle'")
    [(attempt,)] = talk.rows("SELECT id FROM public.ledger_attempt")
    return f"attempt:{attempt}"


BOTH = {"replay_thread": "", "compensate": ""}
SCENARIOS: Mapping[str, Scenario] = {
    "a step was never told": Scenario(check="agent.untold", make=untold, exits=BOTH),
    "a step was never told, and its thread is gone": Scenario(check="agent.untold", make=no_thread, exits={"compensate": ""}),
    "a conversation is stuck": Scenario(check="agent.halted", make=halted, exits=BOTH),
    "a conversation runs and nobody drives it": Scenario(
        check="agent.halted", make=lambda world: halted(world, "running"), exits=BOTH
    ),
    "an attempt was left open": Scenario(check="ledger.attempts", make=left_open, exits=BOTH),
}
