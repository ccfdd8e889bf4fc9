"""What reviewers do on a case's page besides deciding: change and drop calls, take over, pass on, put off, go on to the next."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from escalations import desk
from tests.escalations.scenes import Scene, person

Begin = Callable[..., Scene]
Browse = Callable[[Any], Client]


def read(client: Client, escalation: int, query: str = "") -> str:
    response = client.get(f"/escalations/{escalation}/{query}")
    assert response.status_code == 200
    return response.content.decode()


def post(client: Client, escalation: int, verb: str, **given: Any) -> Any:
    return client.post(f"/escalations/{escalation}/{verb}/", given)


def typed(**changes: str) -> dict[str, str]:
    """Return what the forms of both calls send, untouched but for `changes`, which name the second call's fields."""
    first = {"billing_period": "2026-09-01", "amount_minor": "4,000.00", "description": "September"}
    second = {"billing_period": "2026-09-01", "amount_minor": "600.00", "reason": "Outage on 3 September", "invoice_id": ""}
    return {f"call-0-{name}": value for name, value in first.items()} | {
        f"call-1-{name}": value for name, value in (second | changes).items()
    }


def revisions(web: Any) -> list[Any]:
    return list(
        web.execute("SELECT number, calls, author, as_person, lowers FROM public.escalations_revision ORDER BY number").fetchall()
    )


# -- editing ------------------------------------------------------------------------------------


def test_the_form_of_each_call_lies_open_for_editing(scene: Begin, browse: Browse, reviewer: Any) -> None:
    made = scene()
    escalation = made.approval()
    made.previews()
    page = read(browse(reviewer), escalation, "?edit=1")
    for words in ("Not saved yet.", "Preview edit", "Discard", 'value="600.00"', "Outage on 3 September", "At most €10,000.00."):
        assert words in page, words
    assert 'name="kind" value="approve"' not in page
    assert 'id="call-1-amount_minor"' in page


def test_an_edit_that_lowers_is_previewed_and_may_be_signed_by_its_editor(
    scene: Begin, browse: Browse, web: Any, reviewer: Any
) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    made.previews()
    done = post(client, escalation, "edit", revision=0, **typed(amount_minor="280.00"))
    assert (done.status_code, done.headers["Location"]) == (302, f"/escalations/{escalation}/#proof")
    assert "The preview is being made." in read(client, escalation)
    (preview,) = made.previews()
    page = read(client, escalation)
    for words in ("You changed the calls", "Changed by you", "<del>€600.00</del>", "<ins>€280.00</ins>", "You may decide."):
        assert words in page, words
    assert "No rule holds what is proposed now." in page
    assert post(client, escalation, "decide", kind="approve", revision=1, preview=preview).status_code == 302
    assert made.carries_out().kind == "applied"
    assert made.desk.scalar("SELECT amount_minor FROM public.billing_credit_memo") == 28_000


def test_an_edit_that_raises_needs_somebody_else(scene: Begin, browse: Browse, reviewer: Any) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    post(client, escalation, "edit", revision=0, **typed(amount_minor="700.00"))
    preview = made.previews()[-1]
    page = read(client, escalation)
    assert "You changed it, so another reviewer signs." in page
    assert "Your change does more than lower an amount or drop a call." in page
    refused = post(client, escalation, "decide", kind="approve", revision=1, preview=preview)
    assert refused.status_code == 409
    assert "it needs another reviewer" in refused.content.decode()
    assert "You may decide." in read(browse(person("ravi", "reviewer")), escalation)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("amount_minor", "6oo", "is not an amount in EUR"),
        ("amount_minor", "20,000.00", "less than or equal to €10,000.00."),
        ("amount_minor", "", "This field is required."),
        ("reason", "no", "at least 3 characters"),
        ("billing_period", "2026-09-02", "2026-09-01"),
    ],
)
def test_what_is_wrong_stands_under_its_field_with_what_was_typed(
    scene: Begin, browse: Browse, web: Any, reviewer: Any, field: str, value: str, complaint: str
) -> None:
    escalation = scene().approval()
    answer = post(browse(reviewer), escalation, "edit", revision=0, **typed(**{field: value}))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Nothing was saved." in page
    assert f'aria-invalid="true" aria-describedby="call-1-{field}-e"' in page
    under = page.partition(f'id="call-1-{field}-e">')[2].partition("</span>")[0]
    assert complaint in under
    assert (f'value="{value}"' in page) or (f">{value}</textarea>" in page)
    assert len(revisions(web)) == 1


def test_what_concerns_no_single_field_stands_over_the_call(scene: Begin, browse: Browse, reviewer: Any) -> None:
    answer = post(browse(reviewer), scene().approval(), "edit", revision=0, **typed(invoice_id="3"))
    assert answer.status_code == 422
    assert '<p class="err" role="alert">Give exactly one of invoice_id and billing_period.</p>' in answer.content.decode()


def test_an_edit_that_changes_nothing_says_so(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    answer = post(browse(reviewer), scene().approval(), "edit", revision=0, **typed())
    assert answer.status_code == 422
    assert "Nothing was changed. Change a value, or discard." in answer.content.decode()
    assert len(revisions(web)) == 1


def test_two_who_edit_at_once_do_not_overwrite_each_other(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    escalation = scene().approval()
    first, second = browse(person("ravi", "reviewer")), browse(reviewer)
    assert post(first, escalation, "edit", revision=0, **typed(amount_minor="280.00")).status_code == 302
    lost = post(second, escalation, "edit", revision=0, **typed(amount_minor="290.00"))
    assert lost.status_code == 409
    assert "Your edit was not used and changed nothing." in lost.content.decode()
    assert post(second, escalation, "edit", **typed(amount_minor="290.00")).status_code == 409  # which one was shown?
    assert len(revisions(web)) == 2


def test_hostile_text_that_was_typed_stays_text(scene: Begin, browse: Browse, reviewer: Any) -> None:
    bad = "<script>alert(1)</script>"
    answer = post(browse(reviewer), scene().approval(), "edit", revision=0, **typed(amount_minor=bad, reason=bad))
    assert bad not in answer.content.decode()


# -- dropping and taking over ---------------------------------------------------------------------


def test_a_dropped_call_shows_what_becomes_of_the_rest_and_can_be_put_back(
    scene: Begin, browse: Browse, web: Any, reviewer: Any
) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    made.previews()
    assert post(client, escalation, "drop", revision=0, keep=["0"]).status_code == 302
    made.previews()
    page = read(client, escalation)
    assert "Commits 1 of 2." in page
    assert 'class="callrow dropped" id="call-2"' in page
    assert "No rule holds what is proposed now." in page
    assert "Approve: <b>1 row changes, nothing leaves.</b>" in page
    assert post(client, escalation, "drop", revision=1, keep=["0", "1"]).status_code == 302
    (preview,) = made.previews()
    page = read(client, escalation)
    assert "Commits 2 of 2." in page
    assert "Approve: <b>4 rows change" in page  # the agent's own again: it is nobody's edit
    assert [len(row[1]) for row in revisions(web)] == [2, 1, 2]
    assert post(client, escalation, "decide", kind="approve", revision=2, preview=preview).status_code == 302


def test_what_cannot_run_without_a_dropped_call_says_so(scene: Begin, browse: Browse, reviewer: Any) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    post(client, escalation, "drop", revision=0, keep=["1"])
    made.previews()
    page = read(client, escalation)
    assert "It would fail, so it cannot be approved." in page
    assert "Would commit 0 of 2." in page


def test_the_last_call_cannot_be_dropped(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    answer = post(browse(reviewer), scene().approval(), "drop", revision=0)
    assert answer.status_code == 422
    assert "At least one call has to stay." in answer.content.decode()
    assert len(revisions(web)) == 1


def test_ticks_that_change_nothing_make_no_revision(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    assert post(browse(reviewer), scene().approval(), "drop", revision=0, keep=["0", "1"]).status_code == 302
    assert len(revisions(web)) == 1


def test_a_person_takes_over_what_a_rule_holds_and_another_one_signs(
    scene: Begin, browse: Browse, web: Any, reviewer: Any
) -> None:
    made = scene()
    escalation, client = made.approval(), browse(reviewer)
    made.previews()
    assert "<b>Another reviewer has to sign it,</b> because a rule holds it." in read(client, escalation)
    assert post(client, escalation, "take-over", revision=0, text="I called them.").status_code == 302
    (preview,) = made.previews()
    page = read(client, escalation)
    for words in (
        "You take it over",
        "“I called them.”",
        "They run as a person's, under the same keys.",
        "another reviewer signs.",
    ):
        assert words in page, words
    other = browse(person("ravi", "reviewer"))
    page = read(other, escalation)
    assert "Priya performs it, not the agent." in page
    assert "Perform it" in page
    assert post(other, escalation, "decide", kind="take_over", revision=1, preview=preview).status_code == 302
    assert web.execute("SELECT kind FROM public.escalations_decision").fetchone() == ("take_over",)
    assert made.carries_out().kind == "applied"
    assert made.desk.scalar("SELECT performed_by FROM public.ledger_execution LIMIT 1") == reviewer.id
    assert "Taken over by you." in read(other, escalation)


def test_rolled_back_calls_are_mended_by_an_edit(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    made = scene()
    escalation, client = made.rollbacks(), browse(reviewer)
    page = read(client, escalation)
    assert "?edit=1" in page
    assert 'value="approve"' not in page  # the same again is a retry
    fields = {"billing_period": "2026-09-01", "amount_minor": "120.00"}
    given = {f"call-0-{name}": value for name, value in fields.items()}
    given |= {f"call-1-{name}": value for name, value in (fields | {"amount_minor": "50.00"}).items()}
    given |= {f"call-2-{name}": value for name, value in (fields | {"amount_minor": "70.00"}).items()}
    assert post(client, escalation, "edit", revision=0, **given).status_code == 302
    (preview,) = made.previews()
    page = read(browse(person("ravi", "reviewer")), escalation)
    assert "What would change" in page
    assert "charge €70.00" in page.lower()
    assert 'value="approve" data-key="a">' in page
    done = post(browse(person("ravi", "reviewer")), escalation, "decide", kind="approve", revision=1, preview=preview)
    assert done.status_code == 302
    assert made.carries_out().kind == "applied"


# -- who works on it, and when ------------------------------------------------------------------------


@pytest.mark.parametrize("span", ["15", "60", "tomorrow"])
def test_it_is_put_off_and_woken_up(scene: Begin, browse: Browse, web: Any, reviewer: Any, span: str) -> None:
    escalation, client = scene().asked(), browse(reviewer)
    assert post(client, escalation, "snooze", span=span).status_code == 302
    page = read(client, escalation)
    assert "Snoozed until" in page
    assert "snoozed it until" in page  # so far
    assert 'value="answer"' in page  # it can be decided all the same
    assert post(client, escalation, "wake").status_code == 302
    assert "Snoozed until" not in read(client, escalation)


def test_it_is_put_off_until_a_time_of_ones_own(scene: Begin, browse: Browse, web: Any, reviewer: Any) -> None:
    escalation = scene().asked()
    until = (timezone.localtime() + timedelta(hours=5)).replace(second=0, microsecond=0, tzinfo=None)
    assert post(browse(reviewer), escalation, "snooze", span="own", until=until.isoformat(timespec="minutes")).status_code == 302
    (stored,) = web.execute("SELECT snoozed_until FROM public.escalations_escalation").fetchone()
    assert timezone.localtime(stored).replace(tzinfo=None) == until


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"span": "own"}, "Choose a time."),
        ({"span": "own", "until": "soon"}, "Enter a valid date/time."),
        ({"span": "own", "until": "2020-01-01T10:00"}, "Choose a time in the future"),
        ({"span": "never"}, "Select a valid choice."),
    ],
)
def test_a_time_that_makes_no_sense_is_refused(scene: Begin, browse: Browse, reviewer: Any, given: Any, complaint: str) -> None:
    answer = post(browse(reviewer), scene().asked(), "snooze", **given)
    assert answer.status_code == 422
    assert complaint in answer.content.decode()
    assert 'aria-labelledby="snz-h" data-open' in answer.content.decode()


def test_it_is_passed_on_to_another_reviewer(scene: Begin, browse: Browse, reviewer: Any) -> None:
    escalation, client = scene().asked(), browse(reviewer)
    ravi, nina = person("ravi", "reviewer"), person("nina", "support")
    page = read(client, escalation)
    assert f'<option value="{ravi.id}">ravi</option>' in page
    assert f'<option value="{nina.id}"' not in page
    assert post(client, escalation, "reassign", to=ravi.id).status_code == 302
    page = read(client, escalation)
    assert "ravi holds it until" in page
    assert "passed it on to ravi" in page
    for wrong, complaint in ((nina.id, "Choose an active reviewer."), ("", "Choose a reviewer."), ("x", "Enter a whole number.")):
        answer = post(client, escalation, "reassign", to=wrong)
        assert answer.status_code == 422
        assert complaint in answer.content.decode()


def test_nothing_is_done_to_what_was_decided(scene: Begin, browse: Browse, reviewer: Any) -> None:
    escalation, client = scene().approval(), browse(reviewer)
    post(browse(person("ravi", "reviewer")), escalation, "decide", kind="reject", reason="target")
    acts = {
        "claim": {}, "snooze": {"span": "15"}, "reassign": {"to": person("ravi", "reviewer").id}, "wake": {}, "preview": {},
        "edit": {"revision": 0, **typed(amount_minor="1.00")}, "drop": {"revision": 0, "keep": ["0"]},
        "take-over": {"revision": 0},
    }  # fmt: skip
    for verb, given in acts.items():
        answer = post(client, escalation, verb, **given)
        assert answer.status_code == 409, verb
        assert "Ravi already rejected this" in answer.content.decode(), verb


def test_whoever_looks_sees_who_else_does_and_that_something_changed(scene: Begin, browse: Browse, reviewer: Any) -> None:
    escalation = scene().approval()
    first, second = browse(person("ravi", "reviewer")), browse(reviewer)
    shown = read(second, escalation).partition('"shown": "')[2].partition('"')[0]
    assert post(first, escalation, "presence", shown="", editing="1").status_code == 200
    part = post(second, escalation, "presence", shown=shown).content.decode()
    assert "ravi edits" in part
    assert "Changed meanwhile" not in part
    desk.claim(escalation=escalation, user=person("ravi", "reviewer").id)
    part = post(second, escalation, "presence", shown=shown).content.decode()
    assert "ravi holds it until" in part
    assert "Changed meanwhile: show it" in part
    assert post(browse(person("nina", "support")), escalation, "presence").status_code == 403


# -- what comes next -----------------------------------------------------------------------------------


def test_after_a_decision_the_next_case_is_one_key_away(scene: Begin, browse: Browse, reviewer: Any) -> None:
    escalation, following = scene().asked(), scene().asked()
    client = browse(reviewer)
    assert post(client, escalation, "decide", kind="answer", text="The blue one.").status_code == 302
    page = read(client, escalation)
    assert f'href="/escalations/{following}/" data-key="j" autofocus>' in page
    assert f"Next: E-{following}" in page


def test_the_next_case_opens_by_itself_when_a_reviewer_wants_that(scene: Begin, browse: Browse, reviewer: Any) -> None:
    escalation, following = scene().asked(), scene().asked()
    client = browse(reviewer)
    assert post(client, escalation, "opens-next").status_code == 302
    assert "Then the next one opens" in read(client, escalation)
    done = client.post(f"/escalations/{escalation}/decide/", {"kind": "answer", "text": "The blue one."}, follow=True)
    assert done.redirect_chain == [(f"/escalations/{following}/", 302)]
    assert f"E-{escalation}: answered." in done.content.decode()
    last = client.post(f"/escalations/{following}/decide/", {"kind": "answer", "text": "The red one."}, follow=True)
    assert last.redirect_chain == [(f"/escalations/{following}/", 302)]
    assert "Nothing else waits in the inbox." in last.content.decode()


def test_the_view_of_the_inbox_goes_along(scene: Begin, browse: Browse, reviewer: Any) -> None:
    asked, _held, other = scene().asked(), scene().approval(), scene().asked()
    client = browse(reviewer)
    page = read(client, asked, "?kind=asked")
    assert f'href="/escalations/{other}/?kind=asked"' in page  # the next of that kind
    assert 'href="/escalations/?kind=asked"' in page
    done = client.post(f"/escalations/{asked}/decide/?kind=asked", {"kind": "answer", "text": "Blue."})
    assert done.headers["Location"] == f"/escalations/{asked}/?kind=asked"
