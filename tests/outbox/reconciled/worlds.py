"""A desk, a provider and conversations that are made to disagree, and whoever settles it: a reviewer and the workers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.test import Client
from django.utils import timezone

from escalations.models import Escalation
from escalations.reconciling import scanning
from escalations.reconciling.cases import Case
from outbox import gateway, requests
from outbox.outcomes import Answer
from tests import databases
from tests.agent.batches import make_customer
from tests.agent.takeovers import script
from tests.agent.talks import Talk
from tests.billing import makers
from tests.escalations import scanned
from tests.escalations.scenes import person
from tests.outbox.desk import Desk, Row

STANDS = """
SELECT m.state, i.status, r.status FROM public.escalations_escalation e
LEFT JOIN public.outbox_message m ON m.id = (e.payload ->> 'message_id')::bigint
LEFT JOIN public.billing_refund r ON r.id = coalesce((m.payload ->> 'refund_id')::bigint,
    CASE WHEN e.object LIKE 'refund:%%' THEN split_part(e.object, ':', 2)::bigint END)
LEFT JOIN public.billing_invoice i ON r.id IS NULL AND i.id = coalesce((m.payload ->> 'invoice_id')::bigint,
    CASE WHEN e.object LIKE 'invoice:%%' THEN split_part(e.object, ':', 2)::bigint END)
WHERE e.id = %s
"""
MONEY = ("outbox_message", "billing_invoice", "billing_payment", "billing_refund", "billing_refund_reversal")
LATER = (
    "UPDATE public.ledger_execution SET committed_at = now() - interval '1 hour'",
    "UPDATE public.ledger_attempt SET opened_at = now() - interval '1 hour'",
    "UPDATE public.agent_thread SET progressed_at = now() - interval '1 hour', next_sweep_at = now() - interval '1 hour'",
    "UPDATE public.agent_thread SET leased_until = NULL, lease_owner = NULL",
)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One kind of disagreement. `exits` are all that may be offered, each with what comes of it.

    That is how message and books stand then ("succeeded paid"), "" where nobody does anything, or why it is not possible.
    """

    check: str
    make: "Callable[[World], str]"  # → the object that is asked about
    exits: Mapping[str, str]
    strays: tuple[str, ...] = ()  # exits after which money is owed to nobody: it is asked about, and goes back


@dataclass
class World:
    """Everything that can disagree."""

    desk: Desk
    agent_pool: Any
    superuser: Any
    web: Any
    outbox: Any
    talk: Any = None
    provider: bool = False  # a scan goes through its objects
    uids: set[str] = field(default_factory=set)  # of objects that no message asked for

    def begin_again(self) -> None:
        """Leave nothing of what was before."""
        databases.empty(self.superuser)
        self.desk.customer, self.desk.months, self.talk = makers.make_customer(self.desk.owner), 0, None
        self.desk.provider.call("DELETE", "faults")
        self.desk.card("pm_card_visa")

    def by_hand(self, *queries: str, **values: Any) -> None:
        """Change rows as only somebody at the database's console can, unseen by every trigger."""
        with self.superuser.transaction():
            self.superuser.execute("SET LOCAL session_replication_role = replica")
            for query in queries:
                self.superuser.execute(query, values)

    def get(self, path: str, params: Any) -> Answer:
        """Ask the provider, and see nothing of what other tests left there."""
        mine = {str(row[0]) for row in self.desk.owner.execute("SELECT uid FROM public.outbox_message").fetchall()} | self.uids
        answer = gateway.get(path, params)
        if "data" not in (answer.body or {}):
            return answer
        kept = [one for one in (answer.body or {})["data"] if (one.get("metadata") or {}).get("backstop_uid") in mine]
        return replace(answer, body={"data": kept, "has_more": False})

    def scan(self) -> tuple[int, int, int, str]:
        """Scan everything; the provider's objects only where they disagree, since others leave many there."""
        return scanned.scan(self.outbox, self.asks)

    @property
    def asks(self) -> Callable[[str, Any], Answer] | None:
        """Return what asks the provider, if it is to be asked."""
        return self.get if self.provider else None

    # -- what people and workers do ------------------------------------------------------------------

    def asked_about(self, object_: str) -> int:
        """Scan, see that there is one question about this, and return it."""
        self.scan()
        cases = [case for case, about, _, _ in scanned.asked(self.outbox) if about == object_]
        assert len(cases) == 1, (object_, scanned.asked(self.outbox))
        return cases[0]

    def offered(self, case: int) -> set[str]:
        """Return the exits that a reviewer can choose on the page."""
        shown = Case(Escalation.objects.get(pk=case), user=person("priya", "reviewer"), now=timezone.now())
        return {offer.kind for offer in shown.offers if offer.offered}

    def settle(self, case: int, exit_: str) -> str:
        """Take an exit, have it carried out and compared again, and return what the outbox worker said of it."""
        scanned.choose(self.web, case, exit_)
        if exit_ == "replay_thread":
            self.talk.drive(*script(self.talk))
        self.carry_out()
        scanning.work(self.outbox, get=self.asks)
        assert scanned.state(self.outbox, case) == "done"
        query = "SELECT outcome FROM public.outbox_request WHERE escalation = %s"
        return next((str(row[0]) for row in self.outbox.execute(query, (case,)).fetchall()), "")

    def carry_out(self) -> None:
        """Do what was asked of messages, as the outbox worker does."""
        with self.desk.pool.connection() as conn:
            requests.carry_out(conn)

    def change_facts(self) -> None:
        """Let what people have let stand not be as it was."""
        self.by_hand("UPDATE public.escalations_escalation SET payload = payload - 'fingerprint'")

    def look_up(self, message: Row) -> None:
        """Have a message looked up, as a reviewer does before choosing."""
        requests.ask(self.web, message=message["id"], kind="look_up", reason="To see.", user=7)
        self.carry_out()

    def deliver(self) -> None:
        """Deliver whatever is due now or later."""
        for (message,) in self.desk.owner.execute("SELECT id FROM public.outbox_message ORDER BY id").fetchall():
            self.desk.deliver_all({"id": message})

    def page(self, case: int) -> str:
        """Return a question's page at the desk as a reviewer sees it."""
        client = Client()
        client.force_login(person("priya", "reviewer"), backend="django.contrib.auth.backends.ModelBackend")
        return client.get(f"/reconcile/{case}/").content.decode()

    # -- how everything stands ---------------------------------------------------------------------

    def stands(self, case: int) -> str:
        """Return how the message and the books of a question stand."""
        found = self.outbox.execute(STANDS, (case,)).fetchone()
        return " ".join(str(one) for one in found if one is not None)

    def money(self) -> list[Any]:
        """Return every row that money is written in, without what was merely seen."""
        return [
            self.superuser.execute(f"SELECT to_jsonb(t) - 'seen' FROM public.{name} AS t ORDER BY t.id").fetchall()
            for name in MONEY
        ]

    def moved(self) -> int:
        """Return what moved at the provider for our messages, in minor units."""
        uids = {str(row[0]) for row in self.desk.owner.execute("SELECT uid FROM public.outbox_message").fetchall()}
        moved = self.desk.provider.call("GET", "money")["movements"]
        return sum(one["amount"] for one in moved if one["metadata"].get("backstop_uid") in uids)

    def talks(self) -> Talk:
        """Begin a conversation that does one step, and let it come to its end."""
        databases.empty(self.superuser)  # of the desk's own customer
        customer = make_customer(self.desk.owner, credit_minor=12_000)
        self.talk = Talk(pool=self.agent_pool, owner=self.desk.owner, web=self.web, customer=customer)
        self.talk.say("Use the credit")
        return self.talk

    def an_hour_later(self, *queries: str) -> None:
        """Break rows of conversations, and let an hour pass."""
        self.by_hand(*queries, *LATER)
