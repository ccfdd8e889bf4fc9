"""The database judges: what raw SQL as the login of the pages cannot do, each with the constraint that says so."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from psycopg import errors
from psycopg.types.json import Jsonb

from escalations import lifecycle
from tests.escalations.questions import CALLS, ask, edited, show, sign
from tests.escalations.scenes import person

SIGN = "INSERT INTO public.escalations_signature (escalation_id, revision_id, preview_id, reviewer) VALUES (%s, %s, %s, %s)"
DECIDE = (
    "INSERT INTO public.escalations_decision (escalation_id, kind, text, revision_id, preview_id, waived, decided_by)"
    " VALUES (%s, %s, '', %s, %s, '[]', %s)"
)


@pytest.fixture
def people(database: None) -> dict[str, int]:
    return {name: person(name, "reviewer").id for name in ("nina", "priya", "ravi", "tom")}


@pytest.fixture
def case(agent: Any, web: Any, owner: Any, people: dict[str, int]) -> "Case":
    return Case(agent, web, owner, people)


class Case:
    """A held batch that nina asked for, previewed, and hands that write rows by themselves."""

    def __init__(self, agent: Any, web: Any, owner: Any, people: dict[str, int]) -> None:
        self.agent, self.web, self.owner, self.people = agent, web, owner, people
        self.id = ask(agent, kind="approval", requested_by=people["nina"])
        self.preview = self.show()

    def ask_again(self, **more: Any) -> None:
        """Go on with another question of the same conversation."""
        (thread,) = self.web.execute("SELECT thread FROM public.escalations_escalation WHERE id = %s", (self.id,)).fetchone()
        same = {"thread": thread, "interrupt_id": "next", "object": "next", "requested_by": self.people["nina"]}
        self.id = ask(self.agent, kind="approval", **same, **more)
        self.preview = self.show()

    def show(self, **more: Any) -> int:
        return show(self.agent, self.id, **more)[1]

    def revision(self, number: int = 0) -> int:
        found = self.web.execute(
            "SELECT id FROM public.escalations_revision WHERE escalation_id = %s AND number = %s", (self.id, number)
        ).fetchone()
        return int(found[0])

    def sign(self, name: str, *, revision: int | None = None, preview: int | None = None) -> None:
        wanted = self.revision() if revision is None else revision
        self.web.execute(SIGN, (self.id, wanted, self.preview if preview is None else preview, self.people[name]))

    def decide(self, name: str, *, kind: str = "approve", revision: int | None = None, preview: int | None = None) -> None:
        wanted = self.revision() if revision is None else revision
        self.web.execute(DECIDE, (self.id, kind, wanted, self.preview if preview is None else preview, self.people[name]))

    def edit(self, name: str, calls: Any, *, number: int = 1, **columns: Any) -> None:
        """Write a revision by hand, which claims to lower."""
        values = {"lowers": True, "as_person": False} | columns
        self.web.execute(
            "INSERT INTO public.escalations_revision (escalation_id, number, calls, calls_hash, author, lowers, as_person)"
            " VALUES (%s, %s, %s, '', %s, %s, %s)",
            (self.id, number, Jsonb(calls), self.people[name], values["lowers"], values["as_person"]),
        )


def whole(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return edited calls with everything that a revision keeps."""
    return [CALLS[call["index"]] | call for call in calls]


# -- one way in for each constraint ------------------------------------------------------------


def requester_signs(case: Case) -> None:
    case.sign("nina")


def author_signs(case: Case) -> None:
    case.owner.execute(
        "INSERT INTO public.agent_staff_message (id, thread, number, author, text, state)"
        " SELECT gen_random_uuid(), thread, 1, %s, 'Go', 'taken' FROM public.escalations_escalation WHERE id = %s",
        (case.people["tom"], case.id),
    )
    case.sign("tom")


def answerer_signs(case: Case) -> None:
    lifecycle.decide(case.web, escalation=case.id, kind="answer", text="Credit €600.", user=case.people["priya"])
    case.ask_again()
    case.sign("priya")


def editor_signs_less_of_their_own_raise(case: Case) -> None:
    case.edit("priya", whole(edited(70_000)))
    raised, preview = case.revision(1), case.show()
    case.sign("ravi", revision=raised, preview=preview)
    case.decide("ravi", revision=raised, preview=preview)
    case.ask_again(calls=whole(edited(70_000)), follows=case.id)  # it did not run
    case.edit("priya", whole(edited(65_000)))
    case.sign("priya", revision=case.revision(1), preview=case.show(held=False))


def signs_twice(case: Case) -> None:
    case.sign("priya")
    case.sign("priya")


def editor_signs_a_raise(case: Case) -> None:
    case.edit("priya", whole(edited(70_000)))
    case.sign("priya", revision=case.revision(1), preview=case.show(held=False))


def editor_signs_another_reason(case: Case) -> None:
    case.edit("priya", whole(edited(60_000, reason="Another")))
    case.sign("priya", revision=case.revision(1), preview=case.show(held=False))


def editor_signs_another_invoice(case: Case) -> None:
    calls = whole(edited(60_000))
    calls[0]["arguments"] |= {"invoice_id": 7}
    case.edit("priya", calls)
    case.sign("priya", revision=case.revision(1), preview=case.show(held=False))


def editor_signs_a_call_of_their_own(case: Case) -> None:
    case.edit("priya", [*CALLS, CALLS[0] | {"index": 2, "id": "call-2"}])
    case.sign("priya", revision=case.revision(1), preview=case.show(held=False))


def editor_signs_another_tool(case: Case) -> None:
    case.edit("priya", [CALLS[0] | {"tool": "QueueRefund"}])
    case.sign("priya", revision=case.revision(1), preview=case.show(held=False))


def editor_signs_what_is_held(case: Case) -> None:
    case.edit("priya", whole(edited(55_000)))
    case.sign("priya", revision=case.revision(1), preview=case.show(held=True))


def signs_an_older_revision(case: Case) -> None:
    case.edit("ravi", whole(edited(20_000)))
    case.sign("priya")


def signs_another_question(case: Case) -> None:
    other = Case(case.agent, case.web, case.owner, case.people)
    case.sign("priya", revision=other.revision(), preview=other.preview)


def signs_an_older_preview(case: Case) -> None:
    case.show()
    case.sign("priya")


def signs_what_is_not_made(case: Case) -> None:
    revision = case.revision()
    row = case.web.execute(
        "INSERT INTO public.escalations_preview (revision_id) VALUES (%s) RETURNING id", (revision,)
    ).fetchone()
    case.sign("priya", preview=row[0])


def signs_what_would_fail(case: Case) -> None:
    case.sign("priya", preview=case.show(outcome="fails"))


def signs_the_preview_of_another(case: Case) -> None:
    case.sign("priya", preview=Case(case.agent, case.web, case.owner, case.people).preview)


def decides_without_a_signature(case: Case) -> None:
    case.decide("priya")


def decides_without_a_revision(case: Case) -> None:
    case.web.execute(DECIDE, (case.id, "approve", None, None, case.people["priya"]))


def decides_on_anothers_signature(case: Case) -> None:
    case.sign("ravi")
    case.decide("priya")


def decides_with_one_of_two(case: Case) -> None:
    case.preview = case.show(needs=2)
    case.sign("priya")
    case.decide("priya")


def decides_with_one_person_twice(case: Case) -> None:
    case.preview = case.show(needs=2)
    case.sign("priya")
    case.preview = case.show(needs=2)
    case.sign("priya")
    case.decide("priya")


def decides_with_one_who_saw_something_else(case: Case) -> None:
    case.preview = case.show(needs=2, digest=b"before")
    case.sign("ravi")
    case.preview = case.show(needs=2)
    case.sign("priya")
    case.decide("priya")


def decides_after_an_edit(case: Case) -> None:
    case.sign("priya")
    case.edit("ravi", whole(edited(20_000)))
    case.decide("priya")


def decides_after_a_newer_preview(case: Case) -> None:
    case.sign("priya")
    case.show(needs=2)
    case.decide("priya")


def approves_what_was_taken_over(case: Case) -> None:
    case.edit("ravi", list(CALLS), as_person=True)
    case.preview = case.show()
    case.sign("priya", revision=case.revision(1))
    case.decide("priya", revision=case.revision(1))


def takes_over_what_is_the_agents(case: Case) -> None:
    case.sign("priya")
    case.decide("priya", kind="take_over")


def decides_a_second_time(case: Case) -> None:
    lifecycle.decide(case.web, escalation=case.id, kind="reject", text="No.", user=case.people["ravi"])
    case.decide("priya", kind="answer")


def edits_in_nobodys_name(case: Case) -> None:
    case.web.execute(
        "INSERT INTO public.escalations_revision (escalation_id, number, calls, calls_hash) VALUES (%s, 1, '[]', '')", (case.id,)
    )


def edits_as_number_nought(case: Case) -> None:
    fresh = ask(case.agent, kind="approval", calls=[])
    case.web.execute(
        "INSERT INTO public.escalations_revision (escalation_id, number, calls, calls_hash, author) VALUES (%s, 0, '[]', '', %s)",
        (fresh, case.people["priya"]),
    )


def edits_a_number_twice(case: Case) -> None:
    case.edit("ravi", whole(edited(20_000)))
    case.edit("priya", whole(edited(10_000)))


WAYS: list[tuple[Callable[[Case], None], str]] = [
    (requester_signs, "escalations_signature_four_eyes"),
    (author_signs, "escalations_signature_not_asked"),
    (answerer_signs, "escalations_signature_not_answered"),
    (editor_signs_less_of_their_own_raise, "escalations_signature_own_edit"),
    (signs_twice, "escalations_signature_once"),
    (editor_signs_a_raise, "escalations_signature_own_edit"),
    (editor_signs_another_reason, "escalations_signature_own_edit"),
    (editor_signs_another_invoice, "escalations_signature_own_edit"),
    (editor_signs_a_call_of_their_own, "escalations_signature_own_edit"),
    (editor_signs_another_tool, "escalations_signature_own_edit"),
    (editor_signs_what_is_held, "escalations_signature_own_edit"),
    (signs_an_older_revision, "escalations_signature_newest_revision"),
    (signs_another_question, "escalations_signature_newest_revision"),
    (signs_an_older_preview, "escalations_signature_newest_preview"),
    (signs_what_is_not_made, "escalations_signature_newest_preview"),
    (signs_what_would_fail, "escalations_signature_newest_preview"),
    (signs_the_preview_of_another, "escalations_signature_newest_preview"),
    (decides_without_a_signature, "escalations_decision_signed"),
    (decides_without_a_revision, "escalations_decision_signed"),
    (decides_on_anothers_signature, "escalations_decision_signed"),
    (decides_with_one_of_two, "escalations_decision_signed"),
    (decides_with_one_person_twice, "escalations_decision_signed"),
    (decides_with_one_who_saw_something_else, "escalations_decision_signed"),
    (decides_after_an_edit, "escalations_decision_signed"),
    (decides_after_a_newer_preview, "escalations_decision_signed"),
    (approves_what_was_taken_over, "escalations_decision_signed"),
    (takes_over_what_is_the_agents, "escalations_decision_signed"),
    (decides_a_second_time, "escalations_decision_escalation_id"),
    (edits_as_number_nought, "escalations_revision_of_someone"),
    (edits_a_number_twice, "escalations_revision_number"),
]


@pytest.mark.parametrize(("way", "constraint"), WAYS, ids=lambda value: getattr(value, "__name__", ""))
def test_there_is_no_way_round(case: Case, way: Callable[[Case], None], constraint: str) -> None:
    with pytest.raises(errors.IntegrityError) as refused:
        way(case)
    assert (refused.value.diag.constraint_name or "").startswith(constraint)


def test_nobody_edits_in_the_agents_name(case: Case) -> None:
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        edits_in_nobodys_name(case)


def test_the_requester_does_not_decide_with_the_signature_of_another(case: Case) -> None:
    case.sign("priya")
    with pytest.raises(errors.CheckViolation, match=r"escalations_decision_(signed|four_eyes)"):
        case.decide("nina")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE public.escalations_escalation SET requested_by = NULL",
        "UPDATE public.escalations_escalation SET payload = '{}'",
        "UPDATE public.escalations_preview SET needs = 1, outcome = 'clean'",
        "DELETE FROM public.escalations_preview",
        "UPDATE public.escalations_revision SET lowers = true",
        "UPDATE public.escalations_signature SET reviewer = 1",
        "DELETE FROM public.escalations_signature",
        "UPDATE public.escalations_decision SET kind = 'approve'",
        "DELETE FROM public.escalations_decision",
        "DELETE FROM public.escalations_act",
        "INSERT INTO public.escalations_preview (revision_id, outcome, allowed, needs) SELECT id, 'clean', true, 1"
        " FROM public.escalations_revision",
        "UPDATE public.agent_staff_message SET author = 1 WHERE state = 'taken'",
        "TRUNCATE public.escalations_signature CASCADE",
    ],
)
def test_the_pages_login_cannot_even_ask(case: Case, statement: str) -> None:
    sign(case.web, case.id, case.people["priya"], (0, case.preview))
    with suppress(errors.InsufficientPrivilege):
        assert case.web.execute(statement).rowcount == 0  # row-level security shows it none


def test_what_a_writer_says_about_itself_is_not_believed(case: Case) -> None:
    case.edit("priya", whole(edited(70_000)), lowers=True)
    assert case.web.execute("SELECT lowers FROM public.escalations_revision WHERE number = 1").fetchone() == (False,)
    row = case.web.execute(
        "INSERT INTO public.escalations_signature (escalation_id, revision_id, preview_id, reviewer, requested_by, asked, editor,"
        " lowers, allowed) VALUES (%s, %s, %s, %s, NULL, false, NULL, true, true)"
        " RETURNING requested_by, editor, lowers, allowed",
        (case.id, case.revision(1), case.show(), case.people["ravi"]),
    ).fetchone()
    assert row == (case.people["nina"], case.people["priya"], False, False)
