"""A conversation about one customer, driven as the agent login: what the tests of the driver start from."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg_pool import ConnectionPool

from agent import driver
from agent.llm import Model
from escalations import lifecycle
from escalations.signatures import Signed
from tests.agent import scripts

Connection = psycopg.Connection[Any]


@dataclass
class Talk:
    """One conversation, with a support person (7) who writes, a reviewer (8) who decides and one (9) who edits."""

    pool: "ConnectionPool[Connection]"
    owner: Connection
    web: Connection
    customer: int
    thread: uuid.UUID = field(default_factory=uuid.uuid4)
    numbers: int = 0
    support: int = 7
    reviewer: int = 8
    editor: int = 9

    def __post_init__(self) -> None:
        for user, name in ((self.support, "Support 7"), (self.reviewer, "Reviewer 8"), (self.editor, "Reviewer 9")):
            self.owner.execute(
                "INSERT INTO public.auth_user (id, username, password, is_superuser, first_name, last_name, email, is_staff,"
                " is_active, date_joined) VALUES (%s, %s, '', false, '', '', '', false, true, now()) ON CONFLICT DO NOTHING",
                (user, name),
            )
        self.web.execute(
            "INSERT INTO public.agent_conversation (thread, subject, created_by_id) VALUES (%s, %s, %s)",
            (self.thread, self.customer, self.support),
        )

    def say(self, text: str) -> uuid.UUID:
        """Queue a staff message, as the page does."""
        self.numbers += 1
        row = self.web.execute(
            "INSERT INTO public.agent_staff_message (id, thread, number, author, text)"
            " VALUES (gen_random_uuid(), %s, %s, %s, %s) RETURNING id",
            (self.thread, self.numbers, self.support, text),
        ).fetchone()
        assert row
        return uuid.UUID(str(row[0]))

    def drive(self, *script: Any, model: Model | None = None, **options: Any) -> str:
        """Drive the thread with a model that follows the script."""
        return driver.drive(self.thread, pool=self.pool, model=model or scripts.model(*script), **options)

    def question(self) -> int:
        """Return the thread's open escalation."""
        return int(self.one("SELECT id FROM public.escalations_escalation WHERE thread = %s AND state = 'open'", self.thread))

    def decide(self, kind: str, text: str = "") -> None:
        """Decide the thread's open escalation as the reviewer; approve what the newest preview shows."""
        if kind == "approve":
            self.sign(text=text)
        elif kind == "withdraw":
            lifecycle.withdraw(self.web, escalation=self.question(), user=self.support, text=text)
        else:
            lifecycle.decide(self.web, escalation=self.question(), kind=kind, text=text, user=self.reviewer)

    def sign(self, *, user: int | None = None, text: str = "") -> Signed:
        """Sign the newest revision as its newest preview shows it."""
        newest = (
            "SELECT r.number, p.id FROM public.escalations_preview p JOIN public.escalations_revision r ON r.id = p.revision_id"
            " WHERE r.escalation_id = %s ORDER BY r.number DESC, p.id DESC LIMIT 1"
        )
        number, preview = self.one(newest, self.question())
        about = {"escalation": self.question(), "revision": number, "preview": preview}
        return lifecycle.sign(self.web, user=user or self.reviewer, text=text, **about)

    def revise(self, *calls: dict[str, Any], as_person: bool = False, text: str = "") -> None:
        """Propose these calls (index and arguments) instead, as the second reviewer, whose edit the first one signs."""
        shown = self.one("SELECT max(number) FROM public.escalations_revision WHERE escalation_id = %s", self.question())
        about = {"escalation": self.question(), "user": self.editor, "shown": shown}
        lifecycle.revise(self.web, calls=calls, as_person=as_person, text=text, **about)

    def messages(self) -> list[BaseMessage]:
        """Return the thread's messages as the newest checkpoint has them."""
        found = PostgresSaver(self.pool).get_tuple({"configurable": {"thread_id": str(self.thread)}})  # type: ignore[arg-type]
        return list(found.checkpoint["channel_values"].get("messages", [])) if found else []

    def texts(self) -> list[tuple[str, str]]:
        """Return (type, text) of the messages."""
        return [(message.type, str(message.text)) for message in self.messages()]

    def transcript(self) -> list[tuple[Any, ...]]:
        """Return (role, text) of the transcript's rows, in order."""
        return self.rows("SELECT role, text FROM public.agent_transcript_entry WHERE thread = %s ORDER BY position", self.thread)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return what the owner sees."""
        return self.owner.execute(query, values).fetchall()

    def one(self, query: str, *values: Any) -> Any:
        """Return the only column of the only row that the owner sees."""
        [row] = self.rows(query, *values)
        return row[0] if len(row) == 1 else row

    def state(self) -> str:
        """Return the thread's state as pages see it."""
        return str(self.one("SELECT state FROM public.agent_thread WHERE thread = %s", self.thread))

    def expire(self) -> None:
        """Let the thread's lease run out."""
        self.owner.execute(
            "UPDATE public.agent_thread SET leased_until = now() - interval '1 second' WHERE thread = %s", (self.thread,)
        )

    def escalations(self) -> Sequence[tuple[Any, ...]]:
        """Return (kind, state) of the thread's escalations, oldest first."""
        return self.rows("SELECT kind, state FROM public.escalations_escalation WHERE thread = %s ORDER BY id", self.thread)
