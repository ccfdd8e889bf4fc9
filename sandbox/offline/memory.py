"""What a conversation has told so far: the facts of its newest look-up, and the invoice that it changed last."""

from sandbox.offline import facts as known
from sandbox.offline.facts import Facts
from sandbox.offline.history import History
from sandbox.offline.plans import Reference


def facts(history: History) -> Facts | None:
    """Return what the newest look-up of this turn told."""
    for step in reversed(history.turn.rounds):
        for call in reversed(step.calls):
            if call.tool == "LookUpCustomer" and call.result:
                return known.read(call.result)
    return None


def last(history: History) -> Reference | None:
    """Return the invoice that the conversation changed last, for "it"."""
    for turn in reversed(history.turns[:-1]):
        for step in reversed(turn.writes):
            for call in reversed(() if step.failed else step.calls):
                if "invoice_id" in call.result:
                    return {"invoice_id": call.result["invoice_id"]}
    return None
