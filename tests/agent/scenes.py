"""Conversations as pages find them: real messages, batches, outcomes, escalations and deliveries, without a model."""

import itertools
import uuid
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from psycopg.types.json import Jsonb

from agent import batch, events
from agent.batch import BatchResult
from agent.models import Conversation
from escalations import lifecycle
from tests.agent.batches import Desk

Connection = psycopg.Connection[Any]
numbers = itertools.count(1)


def make_user(role: str | None, *, name: str = "") -> Any:
    """Return a person with a role, or with none."""
    name = name or f"{role or 'nobody'}{next(numbers)}"
    user = get_user_model().objects.create_user(name, password="correct horse battery")
    if role:
        user.groups.add(Group.objects.get(name=role))
    return user


ENTRY = """
INSERT INTO public.agent_transcript_entry (thread, message_id, position, role, text, tool_calls, model, prompt_version)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""


@dataclass
class Scene:
    """One conversation about the desk's customer, and what happened in it so far."""

    desk: Desk
    outbox: Connection
    staff: Any
    conversation: Conversation
    position: itertools.count = field(default_factory=itertools.count)

    def says(self, text: str) -> uuid.UUID:
        """Let the staff member say something that the agent has taken."""
        message = self.queued(text)
        with self.desk.pool.connection() as conn:
            conn.execute("UPDATE public.agent_staff_message SET state = 'taken', taken_at = now() WHERE id = %s", (message,))
        self._entry(f"staff:{message}", "human", text)
        return message

    def queued(self, text: str) -> uuid.UUID:
        """Let a message wait."""
        message = uuid.uuid4()
        self.desk.owner.execute(
            "INSERT INTO public.agent_staff_message (id, thread, number, author, text)"
            " SELECT %s, %s, coalesce(max(number), 0) + 1, %s, %s FROM public.agent_staff_message WHERE thread = %s",
            (message, self.desk.thread, self.staff.pk, text, self.desk.thread),
        )
        return message

    def answers(self, text: str) -> None:
        """Let the agent say something."""
        self._entry(f"ai:{uuid.uuid4()}", "ai", text)

    def calls(self, *calls: tuple[str, dict[str, Any]], text: str = "", **changes: Any) -> "Step":
        """Let the agent ask for tools; nothing runs yet."""
        made = self.desk.batch(*calls, on_behalf_of=self.staff.pk, ai_message_id=f"ai:{uuid.uuid4()}", **changes)
        asked = [{"index": c.index, "id": c.id, "tool": c.tool, "arguments": c.arguments} for c in made.calls]
        self._entry(made.ai_message_id, "ai", text, calls=asked)
        return Step(scene=self, batch=made, asked=asked)

    def runs(self, *calls: tuple[str, dict[str, Any]], text: str = "", **changes: Any) -> BatchResult:
        """Let the agent ask for tools, and run them."""
        return self.calls(*calls, text=text, **changes).runs()

    def notice(self, text: str, *, state: str = "failed", kind: str = "payment_refused") -> None:
        """Leave a notice."""
        with self.desk.pool.connection() as conn:
            conn.execute(
                "INSERT INTO public.agent_notice (thread, kind, state, text, object) VALUES (%s, %s, %s, %s, %s)",
                (self.desk.thread, kind, state, text, f"message:{next(numbers)}"),
            )

    def stands(self, state: str, *, activity: str = "", leased: str = "1 minute") -> None:
        """Put the thread into a state."""
        with self.desk.pool.connection() as conn:
            conn.execute(
                "UPDATE public.agent_thread SET state = %s, activity = %s,"
                " leased_until = CASE WHEN %s = 'running' THEN now() + %s::interval END WHERE thread = %s",
                (state, activity, state, leased, self.desk.thread),
            )

    def drafts(self, text: str) -> None:
        """Let the agent write."""
        with self.desk.pool.connection() as conn:
            conn.execute(
                "INSERT INTO public.agent_draft (thread, fence, text) VALUES (%s, 1, %s)"
                " ON CONFLICT (thread) DO UPDATE SET text = excluded.text, updated_at = now()",
                (self.desk.thread, text),
            )

    def settles(self, state: str, **columns: Any) -> None:
        """Bring the newest outbox message to a state, as a delivery would have."""
        given = {"first_sent_at": "now()", **columns}
        if state in ("succeeded", "rejected", "cancelled"):
            given["finished_at"] = "now()"
        sets = ", ".join(f"{name} = {value}" for name, value in given.items())
        self.outbox.execute(
            f"UPDATE public.outbox_message SET state = %s, {sets} WHERE id = (SELECT max(id) FROM public.outbox_message)",
            (state,),
        )

    def emits(self, kind: str = "feed") -> None:
        """Tell browsers."""
        with self.desk.pool.connection() as conn:
            events.emit(conn, thread=self.desk.thread, kind=kind)  # type: ignore[arg-type]
        events.publish(self.desk.thread, kind)

    def _entry(self, message_id: str, role: str, text: str, calls: list[Any] | None = None) -> None:
        model, version = ("offline", "system 2") if role == "ai" else (None, None)
        with self.desk.pool.connection() as conn:
            conn.execute(
                ENTRY, (self.desk.thread, message_id, next(self.position), role, text, Jsonb(calls or []), model, version)
            )


@dataclass
class Step:
    """Calls that the agent asked for."""

    scene: Scene
    batch: batch.Batch
    asked: list[Any]

    def runs(self, **changes: Any) -> BatchResult:
        """Run them; a change such as `waived` is a person's decision."""
        made = batch.Batch(**(vars(self.batch) | changes))
        return batch.run_batch(self.scene.desk.pool, batch=made)

    def escalates(self, held: BatchResult, *, kind: str = "approval", reason: str = "Over the limit.") -> int:
        """Open the escalation that a reviewer sees."""
        desk, verdicts = self.scene.desk, [verdict.row() for verdict in held.verdicts]
        payload = {
            "reason": reason, "phase": "before_answers", "calls": self.asked, "verdicts": verdicts,
            "attempt_id": str(held.attempt_id), "staff_message": "",
        }  # fmt: skip
        with desk.pool.connection() as conn:
            return lifecycle.open(
                conn,
                kind=kind,
                object=f"thread:{desk.thread}",
                payload=payload,
                thread=desk.thread,
                interrupt_id=uuid.uuid4().hex,
                subject=desk.customer,
                requested_by=self.scene.staff.pk,
                ai_message_id=self.batch.ai_message_id,
                calls=self.asked,
            )


def make_scene(desk: Desk, outbox: Connection, *, staff: Any = None) -> Scene:
    """Return an empty conversation of the desk's customer."""
    staff = staff or make_user("support")
    row = Conversation.objects.create(thread=desk.thread, subject=desk.customer, created_by=staff)
    return Scene(desk=desk, outbox=outbox, staff=staff, conversation=row)
