"""Conversations that wait for a person, with real attempts behind them: what the tests of the review desk start from."""

import uuid
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool

from agent import approvals
from agent import previews as rehearsal
from agent.batch import BatchResult, run_batch
from agent.validation import ProposedCall
from escalations import lifecycle, previews
from tests.agent.batches import Desk, make_customer

Connection = psycopg.Connection[Any]
SEPTEMBER = {"billing_period": "2026-09-01", "currency": "EUR"}

HELD = (
    ("CreateInvoice", {**SEPTEMBER, "amount_minor": 400_000, "description": "September"}),
    ("IssueCreditMemo", {**SEPTEMBER, "amount_minor": 60_000, "reason": "Outage on 3 September"}),
)


def person(name: str, *roles: str) -> Any:
    """Return a user with these roles, made when there is none."""
    user, made = get_user_model().objects.get_or_create(username=name)
    if made:
        user.groups.set(Group.objects.filter(name__in=roles))
    return user


@dataclass
class Scene:
    """A conversation of one staff member about one customer, and the verbs that bring it to a person."""

    pool: "ConnectionPool[Connection]"
    owner: Connection
    outbox: Connection
    staff: Any = field(default_factory=lambda: person("nina", "support"))
    name: str = "Example Bakery Ltd"
    credit_minor: int = 5000

    def __post_init__(self) -> None:
        self.customer = make_customer(self.owner, credit_minor=self.credit_minor)
        self.owner.execute("UPDATE public.billing_customer SET name = %s WHERE id = %s", (self.name, self.customer))
        self.thread = uuid.uuid4()
        self.owner.execute(
            "INSERT INTO public.agent_conversation (thread, subject, created_by_id) VALUES (%s, %s, %s)",
            (self.thread, self.customer, self.staff.id),
        )
        self.owner.execute(
            "INSERT INTO public.agent_thread (thread, fence, leased_until) VALUES (%s, 1, now() + interval '1 hour')",
            (self.thread,),
        )
        self.desk = Desk(pool=self.pool, owner=self.owner, customer=self.customer, thread=self.thread)
        self.position = 0

    def says(self, text: str) -> None:
        """The staff member asks, and the agent takes it up."""
        self.owner.execute(
            "INSERT INTO public.agent_staff_message (id, thread, number, author, text, state, taken_at)"
            " VALUES (gen_random_uuid(), %s, %s, %s, %s, 'taken', now())",
            (self.thread, self.position + 1, self.staff.id, text),
        )
        self.wrote("human", text)

    def wrote(self, role: str, text: str, *, message_id: str = "") -> None:
        """Add one entry to the transcript."""
        self.position += 1
        self.owner.execute(
            "INSERT INTO public.agent_transcript_entry (thread, message_id, position, role, text, tool_calls)"
            " VALUES (%s, %s, %s, %s, %s, %s)",
            (self.thread, message_id or f"m-{self.position}", self.position, role, text, Jsonb([])),
        )

    def tries(self, *calls: tuple[str, dict[str, Any]]) -> tuple[BatchResult, list[dict[str, Any]], str]:
        """Run one real step; return its result, its calls as the payload carries them, and its message id."""
        batch = self.desk.batch(*calls, on_behalf_of=self.staff.id, model="stand-in 1", prompt_version="billing v1")
        result = run_batch(self.pool, batch=batch)
        for answer in result.answers:
            self.wrote("tool", answer.text, message_id=f"{batch.ai_message_id}:{answer.call_index}")
        return result, [_payload(call) for call in batch.calls], batch.ai_message_id

    def opens(self, kind: str, *, reason: str, interrupt: str | None = "", **more: Any) -> int:
        """Put a question to a person, as the driver does."""
        payload = {"kind": kind, "reason": reason, "phase": more.pop("phase", "after_answers"), "calls": [], "verdicts": []}
        calls, verdicts = more.pop("calls", None), more.pop("verdicts", [])
        payload |= {"calls": calls or [], "verdicts": verdicts, **more.pop("payload", {})}
        with self.pool.connection() as conn:
            return lifecycle.open(
                conn,
                kind=kind,
                object=f"thread:{self.thread}",
                payload=payload,
                thread=self.thread,
                interrupt_id=uuid.uuid4().hex if interrupt == "" else interrupt,
                subject=self.customer,
                requested_by=self.staff.id,
                calls=calls,
                **more,
            )

    # -- what the worker does for the desk ---------------------------------------------------------

    def previews(self, **instead: Any) -> list[int]:
        """Make every preview that waits, as the worker does, by a real run; with other values than it found, if given."""
        made = []
        with self.pool.connection() as conn:
            for asked in previews.unmade(conn, thread=self.thread):
                batch = self.desk.batch(
                    on_behalf_of=self.staff.id,
                    ai_message_id=asked.ai_message_id,
                    generation=asked.generation + int(asked.number > 0 or asked.kind != "approval"),
                    calls=approvals.calls_of(asked.calls),
                )
                found = rehearsal.make(self.pool, batch=batch)
                assert previews.store(conn, preview=asked.id, made=replace(found, **instead))
                made.append(asked.id)
        return made

    def carries_out(self, *, taken: bool = True, finished: bool = True) -> BatchResult:
        """Take the newest decision and run what it allows, as the driver does; without the word that it was taken, if so."""
        with self.pool.connection() as conn:
            row = conn.execute(
                "SELECT e.interrupt_id, d.id, e.ai_message_id, r.number, e.kind, e.payload, e.generation"
                " FROM public.escalations_escalation e JOIN public.escalations_decision d ON d.escalation_id = e.id"
                " LEFT JOIN public.escalations_revision r ON r.id = d.revision_id"
                " WHERE e.thread = %s ORDER BY d.id DESC LIMIT 1",
                (self.thread,),
            ).fetchone()
            assert row
            interrupt, decision, message, number, kind, payload, generation = row
            generation += int(bool(number) or kind != "approval")
            if taken:
                lifecycle.mark_resumed(conn, interrupt_ids=[interrupt])
            calls = approvals.calls_of(payload["calls"])
            allowed = approvals.permission(
                conn, decisions=[decision], thread=self.thread, ai_message_id=message, generation=generation, proposed=calls
            )
            batch = self.desk.batch(
                on_behalf_of=self.staff.id, ai_message_id=message, generation=generation, calls=calls, permission=allowed
            )
            result = run_batch(self.pool, batch=batch)
            if taken and finished:
                lifecycle.mark_done(conn, thread=self.thread)
        return result

    def asks_again(self, escalation: int, *, decision: int) -> int:
        """Put the same calls to a person once more, as the driver does when an approval would no longer do what it was for."""
        row = self.owner.execute(
            "SELECT payload, ai_message_id FROM public.escalations_escalation WHERE id = %s", (escalation,)
        ).fetchone()
        assert row
        payload, message = row
        return self.opens(
            "approval", reason=payload["reason"], phase="before_answers", calls=payload["calls"], verdicts=payload["verdicts"],
            ai_message_id=message, follows=escalation, payload={"staff_message": "The same.", "drifted_from": decision},
        )  # fmt: skip

    # -- one of each kind ------------------------------------------------------------------------

    def approval(self, text: str = "Bill September with €4,000.00 and give €600.00 back for the outage.") -> int:
        """A batch of which one call is above its limit."""
        self.says(text)
        result, calls, message = self.tries(*HELD)
        assert result.kind == "held", result
        verdicts = [verdict.row() for verdict in result.verdicts]
        reason = " ".join(dict.fromkeys(verdict["sentence"] for verdict in verdicts))
        return self.opens(
            "approval", reason=reason, phase="before_answers", calls=calls, verdicts=verdicts, ai_message_id=message,
            payload={"staff_message": text, "attempt_id": str(result.attempt_id)},
        )  # fmt: skip

    def rollbacks(self, text: str = "Invoice September, use up the credit and charge the rest.") -> int:
        """Three failed steps in a row."""
        self.says(text)
        invoice = ("CreateInvoice", {**SEPTEMBER, "amount_minor": 12_000})
        for credit in (9_000, 8_000, 5_001):
            result, calls, message = self.tries(
                invoice,
                ("ApplyCredit", {**SEPTEMBER, "amount_minor": credit}),
                ("QueueCharge", {**SEPTEMBER, "amount_minor": 12_000 - credit}),
            )
            assert result.kind == "failed", result
        said = next(answer.text for answer in result.answers if answer.status == "failed").removeprefix("FAILED: ")
        reason = f"3 attempts failed and nothing of them was saved. The last one: {said}"
        return self.opens("rollbacks", reason=reason, calls=calls, ai_message_id=message, payload={"staff_message": text})

    def asked(self, question: str = "Which of the two contracts does the discount belong to?") -> int:
        """The agent asks a person."""
        self.says("Give them the partner discount.")
        _, calls, message = self.tries(("AskHuman", {"question": question}))
        return self.opens(
            "asked", reason=f"The agent asks: {question}", calls=calls, ai_message_id=message, payload={"question": question}
        )

    def infrastructure(self, *, phase: str = "before_answers") -> int:
        """The database stayed away."""
        self.says("Bill October.")
        return self.opens("infrastructure", reason="The database failed while this step ran.", phase=phase)

    def budget(self) -> int:
        """The turn took too many calls of the model."""
        self.says("Go through all invoices of the year.")
        return self.opens("budget", reason="The agent made 12 model calls in this turn; 12 are allowed.")

    def payment(self, *, state: str = "rejected") -> int:
        """A charge that the provider refused, or of which nobody knows."""
        from escalations import settled

        self.says("Bill September with 49.00 and charge it.")
        result, _, _ = self.tries(
            ("CreateInvoice", {**SEPTEMBER, "amount_minor": 4_900}), ("QueueCharge", {**SEPTEMBER, "amount_minor": 4_900})
        )
        assert result.kind == "applied", result
        row = self.owner.execute("SELECT id FROM public.outbox_message WHERE thread = %s", (self.thread,)).fetchone()
        assert row
        self.owner.execute(
            "UPDATE public.outbox_message SET state = %s, refusal = %s, provider_id = 'pi_test_' || id, sends = 1,"
            " first_sent_at = now(), finished_at = CASE WHEN %s THEN now() END WHERE id = %s",
            (state, "insufficient_funds" if state == "rejected" else None, state == "rejected", row[0]),
        )
        settled.open_if_needed(self.outbox, message={"id": row[0]}, outcome=None)
        opened = self.owner.execute(
            "SELECT id FROM public.escalations_escalation WHERE object = %s", (f"message:{row[0]}",)
        ).fetchone()
        assert opened
        return int(opened[0])

    def dirty_state(self) -> int:
        """A scan found a disagreement."""
        with self.pool.connection() as conn:
            return lifecycle.open(
                conn, kind="dirty_state", object=f"invoice:{self.customer}", subject=self.customer,
                payload={"reason": "Invoice 1 says draft, the provider says paid."},
            )  # fmt: skip


def _payload(call: ProposedCall) -> dict[str, Any]:
    from ledger import sentences

    said = sentences.proposed(tool=call.tool, arguments=call.arguments)
    return {"index": call.index, "id": call.id, "tool": call.tool, "arguments": call.arguments, "proposed": said}
