"""The matrix: every kind in every shape and state, for every role, with every decision. The pure table says what comes of
it; the real verb is asked, and the page. Nothing is emptied in between: what a verb does is rolled back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from psycopg import errors

from escalations import facts, lifecycle, permissions, policies
from escalations.call_forms import CallForm
from escalations.models import Decision, Escalation
from escalations.policies import Standing
from escalations.reconciling import deciding
from tests.escalations.questions import CALLS, PROPOSING, ask, edited, row, show, sign
from tests.escalations.scenes import person

STATES: list[str] = Escalation.State.values
ROLES = {
    "outsider": (),
    "support": ("support",),
    "staff": ("support",),  # wrote in the conversation
    "admin": ("admin",),
    "reviewer": ("reviewer",),  # holds it when it is claimed
    "other": ("reviewer",),
    "asker": ("reviewer", "support"),  # the requester
    "writer": ("reviewer",),  # wrote a message that the agent has read
    "editor": ("reviewer",),  # author of the newest revision
}
ASKED = ("staff", "asker", "writer")
SYSTEM = ("expire", "settle")
REVISING = ("edit", "drop", "take_over")
EXITS = policies.EXITS  # of disagreements: elsewhere one of them stands for all
SCANNED = {"reason": "They differ.", "check": "agent.untold", "phase": "after_answers", "calls": [], "verdicts": []}
DECISIONS = [*Decision.Kind.values, "edit", "drop", "reassign", "snooze", "claim"]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A kind of question, and what a reviewer has made of its calls."""

    kind: str
    phase: str = "after_answers"
    calls: bool = True
    revision: list[dict[str, Any]] | None = None  # the edit; None: as the agent proposed
    as_person: bool = False
    held: bool = True
    exits: tuple[str, ...] = ()  # how a disagreement may be settled
    lowers: bool = field(default=False)

    @property
    def number(self) -> int:
        """Return the newest revision's number."""
        return int(self.revision is not None)

    @property
    def decisions(self) -> list[str]:
        """Return what is tried."""
        return [name for name in DECISIONS if self.exits or name not in EXITS[1:]]

    @property
    def proposes(self) -> bool:
        """Return whether there are calls to decide about."""
        return self.calls and self.kind in PROPOSING


SHAPES = {
    "approval": Shape(kind="approval"),
    "approval raised": Shape(kind="approval", revision=edited(70_000)),
    "approval lowered": Shape(kind="approval", revision=edited(20_000), held=False, lowers=True),
    "approval taken over": Shape(kind="approval", revision=edited(60_000), as_person=True, lowers=True),
    "rollbacks": Shape(kind="rollbacks"),
    "rollbacks raised": Shape(kind="rollbacks", revision=edited(70_000), held=False),
    "rollbacks taken over": Shape(kind="rollbacks", revision=edited(60_000), as_person=True, held=False, lowers=True),
    "infrastructure before answers": Shape(kind="infrastructure", phase="before_answers"),
    "infrastructure raised": Shape(kind="infrastructure", phase="before_answers", revision=edited(70_000), held=False),
    "infrastructure after answers": Shape(kind="infrastructure", calls=False),
    **{kind: Shape(kind=kind) for kind in ("asked", "budget", "unknown_outcome", "rejected_payment", "dirty_state")},
    "dirty_state that a scan found": Shape(kind="dirty_state", exits=("replay_thread", "compensate")),
}
# A page asks the same verbs, and draws itself for each answer: one shape is asked in every state, and for every role while it can
# be decided; the others where something can come of it, for those who look, decide, and may not decide about what they asked for.
PAGES = [("approval", state) for state in STATES] + [(name, "open") for name in SHAPES if name != "approval"]
PAGE_ROLES = ("outsider", "support", "admin", "reviewer", "asker")
SHAPE_ROLES = ("admin", "reviewer", "asker")
CASES = sum(len(shape.decisions) for shape in SHAPES.values()) * len(STATES) * len(ROLES)


# -- what the table says -------------------------------------------------------------------------


def expected(shape: Shape, state: str, role: str, decision: str, payload: dict[str, Any]) -> str:
    """Return "done", or why not: a permission, a fact, or the database itself."""
    if not may(role, decision):
        return "forbidden"
    closed = (state, "decide") not in policies.TRANSITIONS
    if decision in SYSTEM:  # a page's login does not speak for the system
        return ("AlreadyDecided" if decision == "expire" else "nothing") if closed else "InsufficientPrivilege"
    held = state == "claimed" and role != "reviewer"
    if decision in ("reassign", "snooze", "claim"):
        return "AlreadyDecided" if closed else "HeldByAnother" if held and decision != "reassign" else "done"
    return (
        policies.refusal(
            decision,
            kind=shape.kind,
            state=state,
            payload=payload,
            revision=shape.number,
            as_person=shape.as_person,
            standing=Standing(
                asked=role in ASKED,
                held_by_another=held,
                edited=role == "editor" and shape.number > 0,
                lowers=shape.lowers,
                allowed=not shape.held,
            ),
        )
        or "done"
    )


def may(role: str, decision: str) -> bool:
    """Return whether the role has this decision at all."""
    return ("support" if decision == "withdraw" else "reviewer") in ROLES[role]


def becomes(state: str, decision: str) -> str:
    """Return the state after a decision that was taken."""
    if decision == "compensate":  # here a note: nobody has to do anything
        return "done"
    verb = {"edit": "revise", "drop": "revise", "take_over": "revise"}.get(decision, decision)
    return policies.TRANSITIONS[state, verb if verb in ("revise", "reassign", "snooze", "claim") else "decide"]


# -- the case, made by the real verbs ------------------------------------------------------------


class Case:
    """One question in its shape and state, and who is asked about it."""

    def __init__(self, shape: Shape, state: str, *, agent: Any, web: Any, owner: Any, people: dict[str, Any]) -> None:
        self.shape, self.state, self.people = shape, state, people
        more: dict[str, Any] = {"payload": SCANNED | {"exits": list(shape.exits)}} if shape.exits else {}
        self.id = ask(
            agent,
            kind=shape.kind,
            phase=shape.phase,
            requested_by=people["asker"].id,
            calls=None if shape.calls else [],
            **more,
        )
        self.thread, self.interrupt = row(agent, self.id, "thread, interrupt_id")
        for number, name in enumerate(("staff", "writer")):
            owner.execute(
                "INSERT INTO public.agent_staff_message (id, thread, number, author, text, state)"
                " VALUES (gen_random_uuid(), %s, %s, %s, 'Bill it', 'taken')",
                (self.thread, number, people[name].id),
            )
        self.shown = self.brought(agent, web)
        self.payload = Escalation.objects.get(pk=self.id).payload

    def brought(self, agent: Any, web: Any) -> tuple[int, int]:
        """Bring it to its shape and state; return what a page shows of it."""
        shape, shown = self.shape, (0, 0)
        if shape.revision is not None:
            editor = self.people["editor"].id
            args = {"user": editor, "calls": shape.revision, "shown": 0, "as_person": shape.as_person}
            lifecycle.revise(web, escalation=self.id, **args)
        if shape.proposes:
            shown = show(agent, self.id, held=shape.held)
        if self.state == "claimed":
            lifecycle.claim(web, escalation=self.id, user=self.people["reviewer"].id)
        if self.state in ("decided", "resumed", "done"):
            first = next(name for name in ("reject", "close", "answer") if name in policies.DECISIONS[shape.kind])
            decided = {"escalation": self.id, "text": "First.", "user": self.people["other"].id}
            if shape.exits:
                deciding.choose(web, kind="replay_thread", **decided)
            else:
                lifecycle.decide(web, kind=first, **decided)
        if self.state in ("resumed", "done"):
            lifecycle.mark_resumed(agent, interrupt_ids=[self.interrupt])
        if self.state == "done":
            lifecycle.mark_done(agent, thread=self.thread)
        if self.state == "expired":
            lifecycle.expire(agent, escalation=self.id, text="Nobody decided in time.")
        assert row(agent, self.id) == self.state
        return shown

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Return the calls that an edit starts from."""
        return self.shape.revision or [{"index": call["index"], "arguments": call["arguments"]} for call in CALLS]


@contextmanager
def undone() -> Iterator[Any]:
    """Give Django's own connection, and roll back whatever is done with it."""
    with transaction.atomic():
        connection.ensure_connection()
        connection.connection.execute("SELECT")  # begins it: else the verb's own transaction would be the outermost, and commit
        yield connection.connection
        transaction.set_rollback(True)


# -- asking the verb -----------------------------------------------------------------------------

AFTER = """
SELECT (SELECT count(*) FROM public.escalations_decision WHERE escalation_id = %s),
       (SELECT state FROM public.escalations_escalation WHERE id = %s)
"""


def of_verb(case: Case, role: str, decision: str) -> tuple[str, str]:
    """Return what came of the verb, and the state afterwards."""
    user = case.people[role]
    check = permissions.check_user_can_withdraw if decision == "withdraw" else permissions.check_user_can_decide
    try:
        check(user)
    except PermissionDenied:
        return "forbidden", case.state
    with undone() as conn:
        try:
            came = "nothing" if run(conn, case, user.id, decision) is None and decision == "settle" else "done"
        except (facts.Fact, errors.InsufficientPrivilege) as fact:
            came = type(fact).__name__
        taken, state = conn.execute(AFTER, (case.id, case.id)).fetchone()
        decided = case.state not in ("open", "claimed") or (came == "done" and state in ("decided", "done"))
        assert taken == int(decided), (case.shape, case.state, role, decision)
    return came, state


def run(conn: Any, case: Case, user: int, decision: str) -> Any:
    """Do it."""
    same: dict[str, Any] = {"escalation": case.id, "user": user}
    verbs: dict[str, Callable[[], Any]] = {
        "approve": lambda: sign(conn, case.id, user, case.shown),
        "edit": lambda: lifecycle.revise(conn, **same, calls=edited(30_000), shown=case.shown[0]),
        "drop": lambda: lifecycle.revise(conn, **same, calls=case.calls[:1], shown=case.shown[0], as_person=case.shape.as_person),
        "take_over": lambda: lifecycle.revise(conn, **same, calls=edited(25_000), shown=case.shown[0], as_person=True),
        "withdraw": lambda: lifecycle.withdraw(conn, **same),
        "expire": lambda: lifecycle.expire(conn, escalation=case.id, text=""),
        "settle": lambda: lifecycle.settle(conn, object=f"thread:{case.thread}", text=""),
        "reassign": lambda: lifecycle.reassign(conn, **same, to=case.people["other"].id),
        "snooze": lambda: lifecycle.snooze(conn, **same, until=timezone.now() + timedelta(hours=1)),
        "claim": lambda: lifecycle.claim(conn, **same),
    }
    if decision in EXITS:
        return deciding.choose(conn, **same, kind=decision, text="Because.")
    verb = verbs.get(decision, lambda: lifecycle.decide(conn, **same, kind=decision, text="Because."))
    return verb()


# -- asking the page -----------------------------------------------------------------------------

STATUS = {"done": 302, "forbidden": 403}


def of_page(case: Case, client: Client, decision: str) -> int:
    """Return the page's status; a bell is rung after its commit, so that nothing is rolled back here."""
    path, form = request_for(case, decision)
    return client.post(f"/escalations/{case.id}/{path}/", form).status_code


def request_for(case: Case, decision: str) -> tuple[str, dict[str, Any]]:
    """Return where a browser sends this decision, and what."""
    revision = case.shown[0]
    if decision == "edit":
        typed = [CallForm(call=CALLS[call["index"]] | call) for call in case.calls] if case.shape.proposes else []
        named = {one.add_prefix(name): one[name].value() or "" for one in typed for name in one.fields}
        return "edit", named | {"revision": revision, "call-0-amount_minor": "300.00"}
    paths: dict[str, tuple[str, dict[str, Any]]] = {
        "drop": ("drop", {"keep": ["0"], "revision": revision}),
        "take_over": ("take-over", {"revision": revision}),
        "reassign": ("reassign", {"to": case.people["other"].id}),
        "snooze": ("snooze", {"span": "60"}),
        "claim": ("claim", {}),
        "approve": ("decide", {"kind": "approve", "revision": revision, "preview": case.shown[1] or 1}),
    }
    return paths.get(decision, ("decide", {"kind": decision, "text": "Because."}))


def page_says(shape: Shape, role: str, decision: str, came: str) -> int:
    """Return the status for what the table says."""
    if "reviewer" not in ROLES[role]:
        return 403
    if decision in (*SYSTEM, *EXITS, "withdraw"):
        return 422  # not offered here
    if decision == "take_over" and shape.as_person and came == "done":
        return 302  # it is that already: nothing happens
    return STATUS.get(came, 409)


# -- the matrix ----------------------------------------------------------------------------------


@pytest.fixture
def people(database: None) -> dict[str, Any]:
    return {name: person(name, *roles) for name, roles in ROLES.items()}


@pytest.fixture
def make(agent: Any, web: Any, owner: Any, people: dict[str, Any]) -> Callable[[Shape, str], Case]:
    return lambda shape, state: Case(shape, state, agent=agent, web=web, owner=owner, people=people)


@pytest.mark.parametrize("name", SHAPES)
def test_every_verb_does_what_the_table_says(make: Callable[[Shape, str], Case], name: str) -> None:
    shape, wrong = SHAPES[name], []
    for state in STATES:
        case = make(shape, state)
        for role in ROLES:
            for decision in shape.decisions:
                said = expected(shape, state, role, decision, case.payload)
                after = becomes(state, decision) if said == "done" else state
                came = of_verb(case, role, decision)
                if came != (said, after):
                    wrong.append((state, role, decision, (said, after), came))
    assert wrong == []


@pytest.mark.parametrize(("name", "state"), PAGES)
def test_every_page_does_what_the_table_says(
    make: Callable[[Shape, str], Case], people: dict[str, Any], name: str, state: str
) -> None:
    shape, wrong, same = SHAPES[name], [], make(SHAPES[name], state)  # is asked whatever leaves no trace
    before = trace(same)
    for role in SHAPE_ROLES if name != "approval" else ROLES if state in ("open", "claimed") else PAGE_ROLES:
        client = Client()
        client.force_login(people[role], backend="django.contrib.auth.backends.ModelBackend")
        for decision in shape.decisions:
            said = page_says(shape, role, decision, expected(shape, state, role, decision, same.payload))
            came = of_page(make(shape, state) if said == 302 else same, client, decision)
            if came != said:
                wrong.append((role, decision, said, came))
    assert wrong == []
    assert trace(same) == before


def trace(case: Case) -> Any:
    """Return what a refused request must leave as it is."""
    found = Escalation.objects.filter(pk=case.id).values().get()
    acts, revisions, signatures = (getattr(Escalation(pk=case.id), name).count() for name in ("acts", "revisions", "signatures"))
    return found, acts, revisions, signatures, list(Decision.objects.filter(escalation=case.id).values())


def test_the_matrix_is_whole() -> None:
    assert {shape.kind for shape in SHAPES.values()} == set(Escalation.Kind.values)
    assert set(Decision.Kind.values) < set(DECISIONS)
    assert {name for names in policies.DECISIONS.values() for name in names} < set(DECISIONS)
    assert CASES == (15 * (14 + 1) + 14 + 6) * 6 * 9 == 13_230
