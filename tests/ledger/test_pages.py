"""The audit pages: what they show, to whom, how they are narrowed, and what they cost."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agent.batch import run_batch
from escalations import lifecycle
from ledger.filters import AttemptFilters
from tests.agent.batches import Desk
from tests.escalations.conftest import browse, scene
from tests.escalations.scenes import Scene, person

__all__ = ["browse", "scene"]
Begin = Callable[..., Scene]
Browse = Callable[[Any], Client]
HOSTILE = "<script>alert(1)</script>"
ATTEMPT = re.compile(r'href="/audit/attempts/([0-9a-f-]{36})/"')


@pytest.fixture
def admin(database: None) -> Any:
    """Return an admin."""
    return person("boss", "admin")


def attempts_on(client: Client, path: str) -> list[str]:
    """Return the attempts that the page links to, in its order."""
    response = client.get(path)
    assert response.status_code == 200
    return ATTEMPT.findall(response.content.decode())


def outcomes(owner: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    rows = owner.execute("SELECT outcome, attempt_id::text FROM public.ledger_attempt_outcome ORDER BY closed_at").fetchall()
    for outcome, attempt in rows:
        found.setdefault(outcome, []).append(attempt)
    return found


def credit(minor: int) -> tuple[str, dict[str, Any]]:
    return ("ApplyCredit", {"amount_minor": minor, "currency": "EUR"})


# -- executions --------------------------------------------------------------------------------


def test_what_was_applied_is_said_with_who_asked_and_for_whom(scene: Begin, browse: Browse, admin: Any) -> None:
    made = scene(name="Sample Cycles BV")
    made.payment()
    page = browse(admin).get("/audit/").content.decode()
    (conversation,) = made.owner.execute("SELECT id FROM public.agent_conversation").fetchone()
    for words in (
        "Created invoice 1 of €49.00",
        "QueueCharge",
        "Sample Cycles BV",
        "nina",
        "stand-in 1",
        f">C-{conversation}</a>",
    ):
        assert words in page, words


def test_executions_are_narrowed(scene: Begin, browse: Browse, admin: Any) -> None:
    paid, credited = scene(name="Sample Cycles BV"), scene(name="Other", staff=person("olga", "support"))
    paid.payment()
    result, _, _ = credited.tries(credit(1_000))
    find = "SELECT id FROM public.agent_conversation WHERE thread = %s"
    (number,) = credited.owner.execute(find, (credited.thread,)).fetchone()
    client, mine = browse(admin), str(result.attempt_id)
    theirs = attempts_on(client, "/audit/?tool=QueueCharge")[0]
    expected = {
        "": {mine, theirs},
        "?tool=ApplyCredit": {mine},
        "?customer=cycles": {theirs},
        f"?customer={credited.customer}": {mine},
        f"?conversation=C-{number}": {mine},
        f"?conversation={credited.thread}": {mine},
        "?conversation=C-999": set(),
        "?person=olga": {mine},
        f"?q={mine}": {mine},
        f"?q={credited.thread}": {mine},
        "?q=call-0": {mine, theirs},
        "?q=charge_queued": {theirs},
        "?q=no+such+words": set(),
        "?q=%00": set(),
        "?since=2000-01-01&until=2100-01-01": {mine, theirs},
        "?until=2000-01-01": set(),
        "?tool=Nonsense": set(),
    }
    for query, attempts in expected.items():
        assert set(attempts_on(client, f"/audit/{query}")) == attempts, query


def test_a_refused_charge_is_never_shown_as_applied(scene: Begin, browse: Browse, admin: Any) -> None:
    made, client = scene(), browse(admin)
    made.payment()
    for state, word in (
        ("rejected", "Refused"),
        ("succeeded", "Confirmed"),
        ("uncertain", "Uncertain"),
        ("dead", "Needs a person"),
    ):
        made.owner.execute("UPDATE public.outbox_message SET state = %s, finished_at = now()", (state,))
        row = rows_of(client, "/audit/?tool=QueueCharge")[0]
        assert word in row, state
        assert "Applied" not in row, state
    assert "Applied" in rows_of(client, "/audit/?tool=CreateInvoice")[0]


def test_look_ups_are_read_and_left_out_unless_asked_for(scene: Begin, browse: Browse, admin: Any) -> None:
    made, client = scene(), browse(admin)
    read = str(made.tries(("LookUpCustomer", {}))[0].attempt_id)
    asked = str(made.tries(("AskHuman", {"question": "Which contract?"}))[0].attempt_id)
    wrote = str(made.tries(credit(100))[0].attempt_id)
    expected = {
        "": {wrote},
        "?does=read": {read},
        "?does=all": {read, asked, wrote},
        "?tool=LookUpCustomer": {read},
        f"?q={read}": {read},
        "?does=nonsense": set(),
    }
    for query, attempts in expected.items():
        assert set(attempts_on(client, f"/audit/{query}")) == attempts, query
    (row,) = rows_of(client, "/audit/?does=read")
    assert "Read</span>" in row
    assert "Applied" not in row


def rows_of(client: Client, path: str) -> list[str]:
    """Return the lines of the table."""
    return re.findall(r"<tr data-row>.*?</tr>", client.get(path).content.decode(), re.DOTALL)


def fill(owner: Any, thread: uuid.UUID, customer: int, staff: int, count: int) -> None:
    """Add applied calls, cheaply, several of them in the same microsecond."""
    owner.execute(
        "INSERT INTO public.ledger_execution (thread, ai_message_id, call_index, generation, tool_call_id, tool, fingerprint,"
        " arguments, result, attempt_id, subject, on_behalf_of, model, prompt_version, committed_at)"
        " SELECT %s, 'old-' || (n / 3), mod(n, 3), 0, 'call-' || n, 'LookUpCustomer', '\\x00',"
        " jsonb_build_object('customer_id', %s::bigint), '{}', gen_random_uuid(), %s, %s, 'test', '1',"
        " timestamptz '2026-01-01' - make_interval(mins => n / 7) FROM generate_series(0, %s - 1) n",
        (thread, customer, customer, staff, count),
    )


def test_executions_are_paged_without_gaps_or_repeats(scene: Begin, browse: Browse, admin: Any) -> None:
    made, client = scene(), browse(admin)
    fill(made.owner, made.thread, made.customer, made.staff.id, 130)
    path, pages = "/audit/?tool=LookUpCustomer", []
    while path:
        page = client.get(path).content.decode()
        pages.append(ATTEMPT.findall(page))
        found = re.search(r'rel="next" href="(\?[^"]+)"', page)
        path = "/audit/" + found[1].replace("&amp;", "&") if found else ""
    assert [len(one) for one in pages] == [50, 50, 30]
    assert len({attempt for one in pages for attempt in one}) == 130
    back = re.search(r'rel="prev" href="(\?[^"]+)"', page)
    assert back
    assert attempts_on(client, "/audit/" + back[1].replace("&amp;", "&")) == pages[1]
    for nonsense in ("before=x", "after=x~y~z", "after=2026-01-01T00:00:00~nonsense~1", "after=%00"):
        assert len(attempts_on(client, f"/audit/?does=all&{nonsense}")) == 50


def test_a_page_costs_the_same_for_many_rows(scene: Begin, browse: Browse, admin: Any) -> None:
    made, client = scene(), browse(admin)
    made.rollbacks()
    made.tries(credit(100))
    for path in ("/audit/?does=all", "/audit/attempts/"):
        with CaptureQueriesContext(connection) as few:
            client.get(path)
        fill(made.owner, made.thread, made.customer, made.staff.id, 60) if path != "/audit/attempts/" else None
        for number in range(10 if path == "/audit/attempts/" else 0):
            made.tries(credit(9_000 + number))
        with CaptureQueriesContext(connection) as lots:
            client.get(path)
        assert len(lots) == len(few), path


# -- attempts ----------------------------------------------------------------------------------


def test_a_rare_outcome_is_found_without_reading_all_that_went_well(owner: Any) -> None:
    owner.execute(
        "INSERT INTO public.ledger_attempt_outcome (attempt_id, thread, ai_message_id, generation, outcome, calls, closed_at)"
        " SELECT gen_random_uuid(), gen_random_uuid(), 'ai', 0, CASE WHEN n > 4990 THEN 'rolled_back' ELSE 'committed' END, '[]',"
        " now() - make_interval(secs => n) FROM generate_series(1, 5000) AS n"
    )
    owner.execute("ANALYZE public.ledger_attempt_outcome")
    form = AttemptFilters({"outcome": "rolled_back"})
    plan = form.rows().order_by("-closed_at", "-attempt_id")[:50].explain()
    assert "ledger_outcome_troubled" in plan


def test_attempts_are_narrowed(scene: Begin, browse: Browse, admin: Any) -> None:
    made = scene(name="Sample Cycles BV")
    made.approval()
    made.owner.execute("UPDATE public.escalations_escalation SET state = 'done'")
    made.rollbacks()
    made.tries(credit(100))
    made.tries(("ApplyCredit", {"amount_minor": -1, "currency": "EUR"}))
    left_open = str(uuid.uuid4())
    made.owner.execute(
        "INSERT INTO public.ledger_attempt"
        " (id, thread, ai_message_id, generation, subject, on_behalf_of, fence, calls, model, prompt_version)"
        " SELECT %s, thread, 'lost', 0, subject, on_behalf_of, 1, calls, model, prompt_version"
        " FROM public.ledger_attempt ORDER BY id LIMIT 1",
        (left_open,),
    )
    found, client = outcomes(made.owner), browse(admin)
    every = {attempt for kind in found.values() for attempt in kind} | {left_open}
    assert {kind: len(attempts) for kind, attempts in found.items()} == {
        "held": 1,
        "rolled_back": 3,
        "committed": 1,
        "refused": 1,
    }
    expected = {
        "": every,
        "?outcome=held": set(found["held"]),
        "?outcome=rolled_back": set(found["rolled_back"]),
        "?outcome=refused": set(found["refused"]),
        "?outcome=open": {left_open},
        "?outcome=bug": set(),
        "?sqlstate=23514": set(found["rolled_back"]),
        "?sqlstate=23514&outcome=held": set(),
        "?sqlstate=nonsense": set(),
        "?tool=QueueCharge": set(found["rolled_back"]),
        "?tool=QueueCharge&outcome=rolled_back&customer=cycles&person=nina": set(found["rolled_back"]),
        "?outcome=rolled_back&person=nobody": set(),
        "?outcome=rolled_back&q=not_negative": set(found["rolled_back"]),
        f"?q={found['held'][0]}": set(found["held"]),
        f"?outcome=held&q={made.thread}": set(found["held"]),
        "?customer=nobody": set(),
    }
    for query, attempts in expected.items():
        assert set(attempts_on(client, f"/audit/attempts/{query}")) == attempts, query
    order = attempts_on(client, "/audit/attempts/?outcome=rolled_back")
    assert order == found["rolled_back"][::-1]


def test_one_attempt_tells_what_failed_and_what_was_undone(scene: Begin, browse: Browse, admin: Any) -> None:
    made = scene(name="Sample Cycles BV")
    escalation = made.rollbacks()
    newest = outcomes(made.owner)["rolled_back"][-1]
    page = browse(admin).get(f"/audit/attempts/{newest}/").content.decode()
    for words in (
        "“Use €50.01 of credit for the invoice of September 2026” failed",
        "Call 2 of 3 failed; 1 row undone with it. Nothing was changed, nothing left.",
        "<code>23514</code> check_violation",
        "number 1 of this call",
        "UPDATE public.billing_credit_account",
        "created, then undone",
        f'href="/escalations/{escalation}/"',
        "asked by nina for Sample Cycles BV",
        "Not applied: never ran",
    ):
        assert words in page, words


def test_a_call_that_nobody_can_read_is_still_said_in_words(scene: Begin, browse: Browse, admin: Any) -> None:
    made = scene()
    made.tries(("QueueRefund", {"amount_minor": 10**9}), ("PaintTheShed", {}))
    (attempt,) = outcomes(made.owner)["refused"]
    page = browse(admin).get(f"/audit/attempts/{attempt}/").content.decode()
    assert "1 · Queue refund (arguments not valid)</b>" in page
    assert "2 · Paint the shed</b>" in page


def test_an_applied_attempt_leads_to_what_it_sent(scene: Begin, browse: Browse, admin: Any) -> None:
    made = scene()
    made.payment()
    page = browse(admin).get(f"/audit/attempts/{outcomes(made.owner)['committed'][0]}/").content.decode()
    for words in ("2 calls were applied together", "rows changed in one transaction", "pi_test_", "draft"):
        assert words in page, words
    assert "&quot;status&quot;: &quot;charge_queued&quot;" in page  # what the model was told


def test_an_attempt_answers_why(scene: Begin, browse: Browse, web: Any, admin: Any) -> None:
    made, reviewer = scene(), person("priya", "reviewer")
    refused = made.payment()
    (message,) = made.owner.execute("SELECT id FROM public.outbox_message").fetchone()
    client, path = browse(admin), f"/audit/attempts/{outcomes(made.owner)['committed'][0]}/"
    page = client.get(path).content.decode()
    for words in (
        "<b>nina</b> “Bill September with 49.00 and charge it.”",
        f'<a href="/outbox/{message}/">Message M-{message}</a>, refused',
        "Charge €49.00 to the card ending in 4242",
        f'<a href="/escalations/{refused}/">Escalation E-{refused}</a>, open',
    ):
        assert words in page, words
    assert "rejected" not in page
    assert f"/outbox/{message}/" not in browse(reviewer).get(path).content.decode()  # the outbox is the admin's
    held = scene(name="Other")
    escalation = held.approval("Give them €600.00 back.")
    lifecycle.decide(web, escalation=escalation, kind="reject", text="The log shows 8 seats.", user=reviewer.id)
    page = client.get(f"/audit/attempts/{outcomes(made.owner)['held'][0]}/").content.decode()
    for words in (
        "“Give them €600.00 back.”",
        "Rejected by priya.",
        "“The log shows 8 seats.”",
        f">E-{escalation}</a>",
        "not run yet",
    ):
        assert words in page, words


def test_an_outcome_is_shown_although_its_attempt_was_lost(scene: Begin, browse: Browse, superuser: Any, admin: Any) -> None:
    made = scene()
    made.rollbacks()
    lost = outcomes(made.owner)["rolled_back"][0]
    superuser.execute("SET session_replication_role = replica")
    superuser.execute("DELETE FROM public.ledger_attempt WHERE id = %s", (lost,))
    superuser.execute("SET session_replication_role = DEFAULT")
    client = browse(admin)
    assert "check_violation" in client.get(f"/audit/attempts/{lost}/").content.decode()
    assert lost in attempts_on(client, "/audit/attempts/?outcome=rolled_back")


def test_hostile_text_stays_text(scene: Begin, browse: Browse, admin: Any) -> None:
    made = scene(name=HOSTILE)
    made.tries(("AskHuman", {"question": HOSTILE}))
    made.tries((HOSTILE, {"x": HOSTILE}))
    client = browse(admin)
    paths = ["/audit/?does=all", "/audit/attempts/", f"/audit/?q={HOSTILE}", f"/find/?q={HOSTILE}"]
    paths += [f"/audit/attempts/{attempt}/" for kind in outcomes(made.owner).values() for attempt in kind]
    for path in paths:
        page = client.get(path).content.decode()
        assert "<script>alert" not in page, path
        assert "&lt;script&gt;alert" in page, path


def test_the_trail_is_for_reviewers_and_admins(scene: Begin, browse: Browse) -> None:
    made = scene()
    made.tries(credit(100))
    paths = ["/audit/", "/audit/attempts/", f"/audit/attempts/{outcomes(made.owner)['committed'][0]}/"]
    for role, status in (("support", 403), ("reviewer", 200), ("admin", 200)):
        client = browse(person(role, role))
        assert [client.get(path).status_code for path in paths] == [status] * 3
    for path in paths:
        assert Client().get(path).headers["Location"].startswith("/login/")
    assert browse(person("admin", "admin")).get(f"/audit/attempts/{uuid.uuid4()}/").status_code == 404


def test_an_attempt_outside_any_conversation_has_its_page(desk: Desk, browse: Browse, admin: Any) -> None:
    result = run_batch(desk.pool, batch=desk.batch(credit(100)))
    page = browse(admin).get(f"/audit/attempts/{result.attempt_id}/").content.decode()
    assert "user 7" in page
    assert "Nothing else refers to it." in page
