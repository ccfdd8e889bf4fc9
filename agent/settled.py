"""What reaches a conversation from outside it: outcomes of external effects, and escalations."""

from collections.abc import Mapping
from typing import Any

from psycopg import Connection

from agent import events
from outbox import handlers

# outcome → what a page shows it as, and how the sentence about the effect ends
WORDS: Mapping[str, tuple[str, str]] = {
    "succeeded": ("confirmed", "confirmed by {provider}."),
    "rejected": ("failed", "refused{why}. {means}"),
    "accepted": ("sent", "{provider} has it; it is not final yet."),
    "uncertain": ("uncertain", "no answer from {provider} yet. It is being looked up; please do not ask for it again."),
    "dead": ("uncertain", "it is not known what became of it. A person will look; please do not ask for it again."),
    "cancelled": ("undone", "withdrawn before it was sent."),
}
# Whoever settles a message twice tells it once.
TELL = """
INSERT INTO public.agent_notice (thread, kind, state, text, object) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (thread, kind, object) DO NOTHING
"""


def tell_conversation(conn: Connection[Any], *, message: Mapping[str, Any], outcome: Any) -> None:
    """Leave a notice of what became of an effect, for staff at once and for the model with the next staff message.

    Runs in the settling transaction, as the outbox login. `message` is the outbox row; an effect that no conversation
    asked for, or an outcome that changes nothing for people, is told to nobody.
    """
    if message["thread"] is None or outcome.kind not in WORDS:
        return
    state, text = notice(message=message, outcome=outcome)
    kind = f"{message['topic'].partition('.')[0]}_{outcome.kind}"
    conn.execute(TELL, (message["thread"], kind, state, text, f"message:{message['id']}"))
    events.emit(conn, thread=message["thread"], kind="feed")


def tell_contradiction(conn: Connection[Any], *, message: Mapping[str, Any], concern: str, known: bool = False) -> None:
    """Leave a notice that an effect came out otherwise than it should, which `concern` says; staff and model learn it.

    `known` says that a person has looked already.
    """
    if message["thread"] is None:
        return
    about = handlers.sentence(topic=message["topic"], payload=message["payload"])
    text = f"{about}: {concern[:1].lower()}{concern[1:]}" + ("" if known else " A person will look.")
    kind = f"{message['topic'].partition('.')[0]}_contradicted"
    conn.execute(TELL, (message["thread"], kind, "uncertain", text, f"message:{message['id']}"))
    events.emit(conn, thread=message["thread"], kind="feed")


def notice(*, message: Mapping[str, Any], outcome: Any) -> tuple[str, str]:
    """Return the page's state and the sentence, such as "Charge €360.00 to …: refused (insufficient funds). …"."""
    state, ending = WORDS[outcome.kind]
    why = f" ({outcome.refusal.replace('_', ' ')})" if outcome.refusal else ""
    about = handlers.sentence(topic=message["topic"], payload=message["payload"])
    means = handlers.if_refused(message["topic"], otherwise="Nothing was moved.")
    return state, f"{about}: {ending.format(provider=message['destination'].capitalize(), why=why, means=means)}"


def tell_escalation(conn: Connection[Any], *, escalation: Mapping[str, Any]) -> None:
    """Tell the browsers of a conversation that a question of it was opened or decided; pages read the escalation itself."""
    if escalation["thread"] is not None:
        events.emit(conn, thread=escalation["thread"], kind="escalation")
