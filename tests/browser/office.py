"""An office on the running instance: customers of its own, what staff ask for them, and people at browsers who are logged in."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import uuid4

from playwright.sync_api import Page, expect

from billing import invoices
from sandbox.demo import books
from sandbox.demo.cast import DemoCustomer
from sandbox.demo.provider import Provider
from tests.pages import Complaints, Pages, log_in
from tests.stack import Stack
from tests.waiting import until

SOON = 30  # seconds: a loaded machine is slow, a stuck one is stuck
# What waits for a reviewer whose page is ready: every preview that was asked for is made, and an approval has one.
WAITS = """
SELECT e.id FROM public.escalations_escalation e WHERE e.thread = %s AND e.state IN ('open', 'claimed') AND NOT EXISTS (
    SELECT 1 FROM public.escalations_preview p JOIN public.escalations_revision r ON r.id = p.revision_id
    WHERE r.escalation_id = e.id AND p.made_at IS NULL
) AND (e.kind <> 'approval' OR EXISTS (
    SELECT 1 FROM public.escalations_preview p JOIN public.escalations_revision r ON r.id = p.revision_id
    WHERE r.escalation_id = e.id
))
"""
OPEN = "SELECT id FROM public.escalations_escalation WHERE thread = %s AND state IN ('open', 'claimed')"
DECIDED = """
SELECT d.kind, u.username, d.text FROM public.escalations_decision d
LEFT JOIN public.auth_user u ON u.id = d.decided_by WHERE d.escalation_id = %s
"""
EXECUTED = """
SELECT x.tool, u.username FROM public.ledger_execution x LEFT JOIN public.auth_user u ON u.id = x.performed_by
WHERE x.thread = %s AND x.tool <> 'LookUpCustomer' ORDER BY x.committed_at, x.call_index
"""
TOLD = "SELECT text FROM public.agent_transcript_entry WHERE thread = %s AND role = 'tool' ORDER BY position"


@dataclass(frozen=True)
class Talk:
    """A conversation with the agent about one customer."""

    number: int
    thread: Any
    customer: int
    name: str

    @property
    def path(self) -> str:
        """Return the address of its page."""
        return f"/conversations/{self.number}/"


class Office:
    """What the tests of the desk share. Every customer is made for one test, so that tests do not meet."""

    def __init__(self, *, stack: Stack, cookies: dict[str, Any], pages: Pages, complaints: Complaints) -> None:
        self.stack, self.cookies, self.pages, self.complaints = stack, cookies, pages, complaints
        self.opened = ExitStack()
        self.conn = self.opened.enter_context(stack.connect("superuser"))
        self.staff, self.talks = self.page("support"), list[Talk]()

    # -- people ------------------------------------------------------------------------------------

    def page(self, login: str, path: str = "", **options: Any) -> Page:
        """Return a page at a browser of its own where somebody is logged in; without a login, nobody."""
        cookies = self._cookies(login) if login else ()
        page = self.opened.enter_context(self._lent(cookies=cookies, **options))
        if path:
            page.goto(path)
        return page

    def _lent(self, **options: Any) -> AbstractContextManager[Page]:
        return self.pages.lent(self.complaints, base_url=self.stack.address, **options)

    def _cookies(self, login: str) -> Any:
        if login not in self.cookies:
            with self._lent() as page:
                log_in(page, *self.stack.logins[login])
                self.cookies[login] = page.context.cookies()
        return self.cookies[login]

    # -- what staff ask for ------------------------------------------------------------------------

    def ask(self, text: str, *, credit_minor: int = 500_000) -> Talk:
        """Let support staff ask for something, or nothing yet, about a new customer with a card and so many cents of credit."""
        name = f"Paper Round {uuid4().hex[:6]} Ltd"
        email = f"{uuid4().hex}@round.test"
        who = DemoCustomer(name=name, email=email, currency="EUR", credit_minor=credit_minor)
        with self.stack.connect("owner") as conn:
            books.make(conn, who=who, provider=Provider.of_instance(self.stack.data), today=date.today())
        ((customer,),) = self.rows("SELECT id FROM public.billing_customer WHERE email = %s", email)
        number = int(self._post("/api/conversations/", {"subject": customer})["id"])
        ((thread,),) = self.rows("SELECT thread FROM public.agent_conversation WHERE id = %s", number)
        talk = Talk(number=number, thread=thread, customer=customer, name=name)
        self.talks.append(talk)
        if text:
            self.say(talk, text)
        return talk

    def say(self, talk: Talk, text: str) -> None:
        """Let support staff say something in a conversation."""
        self._post(f"/api{talk.path}messages/", {"text": text})

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        token = next(cookie["value"] for cookie in self.cookies["support"] if "csrf" in cookie["name"].lower())
        answer = self.staff.request.post(path, data=body, headers={"X-CSRFToken": token, "Referer": self.stack.address})
        assert answer.ok, answer.text()
        return answer.json() if answer.body() else None

    def by_hand(self, query: str, *values: Any) -> None:
        """Change rows as whoever owns the database may do in a console."""
        with self.stack.connect("owner") as conn:
            conn.execute(query, values)

    def leave(self) -> None:
        """Take back whatever still waits for a reviewer: the inbox of the next test is as it was."""
        for talk in self.talks:
            for (case,) in self.rows(OPEN, talk.thread):
                self._post(f"/api{talk.path}withdraw/", {"escalation": case})

    def invoice(self, talk: Talk, *, month: date, amount_minor: int) -> None:
        """Make a draft invoice as somebody else would, in cents."""
        with self.stack.connect("owner") as conn:
            invoices.create(
                conn, customer_id=talk.customer, billing_period=month, amount_minor=amount_minor, currency="EUR", description=""
            )

    # -- what reviewers see ------------------------------------------------------------------------

    def case(self, talk: Talk) -> int:
        """Return the question of a conversation that waits, with its previews made."""
        found = until(lambda: self.rows(WAITS, talk.thread), seconds=SOON, what="a question that waits")
        return int(found[0][0])

    def open(self, login: str, case: int, **options: Any) -> Page:
        """Return the page of a question when it listens to keys."""
        page = self.page(login, f"/escalations/{case}/", **options)
        ready(page)
        return page

    # -- the database's truth ----------------------------------------------------------------------

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return what the database says."""
        return self.conn.execute(query, values).fetchall()

    def decision(self, case: int) -> tuple[str, str, str]:
        """Return kind, name and words of the one decision."""
        ((kind, name, text),) = self.rows(DECIDED, case)
        return kind, name, text

    def ends(self, case: int) -> None:
        """Wait until the conversation has taken the decision and is done with it."""
        state = "SELECT 1 FROM public.escalations_escalation WHERE id = %s AND state = 'done'"
        until(lambda: self.rows(state, case), seconds=SOON, what=f"the end of E-{case}")

    def idle(self, talk: Talk) -> None:
        """Wait until the agent has answered and nothing waits."""
        state = """
        SELECT 1 FROM public.agent_thread t WHERE t.thread = %s AND t.state = 'idle' AND NOT EXISTS (
            SELECT 1 FROM public.agent_staff_message m WHERE m.thread = t.thread AND m.state = 'queued'
        )
        """
        until(lambda: self.rows(state, talk.thread), seconds=SOON, what="the agent's answer")

    def acts(self, case: int) -> list[tuple[str, str | None]]:
        """Return what people did with a question besides deciding: the act, and who did it."""
        query = "SELECT a.kind, u.username FROM public.escalations_act a LEFT JOIN public.auth_user u ON u.id = a.by"
        return self.rows(f"{query} WHERE a.escalation_id = %s AND a.kind <> 'notified' ORDER BY a.id", case)

    def sent(self, talk: Talk) -> None:
        """Wait until everything that a conversation sends is confirmed."""
        states = "SELECT 1 FROM public.outbox_message WHERE thread = %s HAVING count(*) > 0 AND bool_and(state = 'succeeded')"
        until(lambda: self.rows(states, talk.thread), seconds=SOON, what="the confirmation")

    def executed(self, talk: Talk) -> list[tuple[str, str | None]]:
        """Return what was executed in a conversation: the tool, and the person who did it instead of the agent."""
        return self.rows(EXECUTED, talk.thread)

    def told(self, talk: Talk) -> Sequence[str]:
        """Return what the model read of its calls."""
        return [text for (text,) in self.rows(TOLD, talk.thread)]

    def balance(self, talk: Talk) -> int:
        """Return the customer's credit in cents."""
        query = "SELECT balance_minor FROM public.billing_credit_account WHERE customer_id = %s"
        ((balance,),) = self.rows(query, talk.customer)
        return int(balance)

    def invoices(self, talk: Talk) -> list[tuple[str, int, int]]:
        """Return the customer's invoices: status, amount and what is due, in cents."""
        query = "SELECT status, amount_minor, amount_due_minor FROM public.billing_invoice WHERE customer_id = %s ORDER BY id"
        return self.rows(query, talk.customer)


def ready(page: Page) -> None:
    """Wait until the page listens to keys: only its script shows this button."""
    expect(page.get_by_role("button", name="Theme")).to_be_visible()
