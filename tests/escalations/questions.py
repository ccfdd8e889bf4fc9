"""Questions of threads of their own, with previews as the agent's worker would store them: what tests of the verbs start from."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from escalations import lifecycle, previews
from escalations.previews import Made, Outcome
from escalations.signatures import Signed

HELD = {
    "call_index": 0, "action": "hold", "rule": "per_call", "version": 3, "measured": 60_000, "allowed": 50_000,
    "currency": "EUR", "sentence": "Too much.",
}  # fmt: skip
SUBJECT = 42
CALLS: tuple[dict[str, Any], ...] = (
    {
        "index": 0, "id": "call-0", "tool": "IssueCreditMemo",
        "arguments": {
            "customer_id": SUBJECT, "billing_period": "2026-09-01", "amount_minor": 60_000, "currency": "EUR", "reason": "Outage",
        },
    },
    {
        "index": 1, "id": "call-1", "tool": "CreateInvoice",
        "arguments": {"customer_id": SUBJECT, "billing_period": "2026-10-01", "amount_minor": 10_000, "currency": "EUR"},
    },
)  # fmt: skip
PROPOSING = ("approval", "rollbacks", "infrastructure")


def ask(
    agent: Any,
    *,
    kind: str = "asked",
    requested_by: int | None = None,
    waits: bool = True,
    phase: str = "after_answers",
    calls: Sequence[Mapping[str, Any]] | None = None,
    **more: Any,
) -> int:
    """Open an escalation of a thread of its own; the kinds that propose calls propose `CALLS`."""
    thread = uuid.uuid4()
    proposed = list(CALLS if calls is None else calls) if kind in PROPOSING else []
    payload = {
        "reason": "Why.",
        "phase": "before_answers" if kind == "approval" else phase,
        "calls": proposed,
        "verdicts": [HELD],
    }
    return lifecycle.open(
        agent,
        **{
            "kind": kind, "object": f"thread:{thread}", "payload": payload, "thread": thread, "subject": SUBJECT,
            "interrupt_id": thread.hex if waits else None, "requested_by": requested_by, "ai_message_id": "ai-1",
            "calls": proposed or None, **more,
        },
    )  # fmt: skip


def made(outcome: Outcome = "clean", *, held: bool = True, needs: int = 1, digest: bytes = b"same", **more: Any) -> Made:
    """Return what a worker found: by default that all goes well, and that a limit holds it."""
    clean = outcome == "clean"
    return Made(
        **{
            "outcome": outcome, "policy_version": "3", "verdicts": [HELD] if held else [], "allowed": clean and not held,
            "needs": needs, "digest": digest if clean else None, "changes": [] if clean else None, **more,
        },
    )  # fmt: skip


def show(agent: Any, escalation: int, outcome: Outcome = "clean", **more: Any) -> tuple[int, int]:
    """Make what waits to be made, or one that is asked for now; return the numbers that a page would show and send back."""
    revision, number = agent.execute(
        "SELECT id, number FROM public.escalations_revision WHERE escalation_id = %s ORDER BY number DESC LIMIT 1", (escalation,)
    ).fetchone()
    preview = previews.ask(agent, revision=revision, user=None)
    assert previews.store(agent, preview=preview, made=made(outcome, **more))
    return number, preview


def sign(web: Any, escalation: int, user: int, shown: tuple[int, int], text: str = "") -> Signed:
    """Sign what was shown."""
    return lifecycle.sign(web, escalation=escalation, user=user, revision=shown[0], preview=shown[1], text=text)


def edited(amount: int = 20_000, *, of: int = 0, drop: int | None = None, **arguments: Any) -> list[dict[str, Any]]:
    """Return `CALLS` with another amount, or other arguments, or without one of them."""
    changes = {"amount_minor": amount, **arguments}
    return [
        {"index": call["index"], "arguments": call["arguments"] | (changes if call["index"] == of else {})}
        for call in CALLS
        if call["index"] != drop
    ]


def row(conn: Any, escalation: int, columns: str = "state") -> Any:
    """Return columns of an escalation; a single one as it is."""
    found = conn.execute(f"SELECT {columns} FROM public.escalations_escalation WHERE id = %s", (escalation,)).fetchone()
    return found[0] if len(found) == 1 else found
