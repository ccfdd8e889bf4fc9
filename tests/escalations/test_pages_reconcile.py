"""The page of the reconcile desk: who sees it, what it says of both sides, and what its forms do."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from escalations import lifecycle
from escalations.models import Decision, Scan
from escalations.reconciling import listing, scanning
from tests.escalations import scanned
from tests.escalations.questions import row
from tests.escalations.scenes import Scene, person

Browse = Callable[[Any], Client]
BREAK = "UPDATE public.billing_credit_account SET balance_minor = balance_minor + 700 WHERE customer_id = %s"


@pytest.fixture
def dead(scene: Callable[..., Scene], outbox: Any) -> int:
    """Return the question about a charge of which nobody knows, that Nina asked for."""
    case = scene().payment(state="dead")
    assert scanned.scan(outbox)[:2] == (1, 0), "it is asked about already"
    return case


@pytest.fixture
def differs(scene: Callable[..., Scene], owner: Any, superuser: Any, outbox: Any) -> int:
    """Return the question about a balance that differs from its entries."""
    made = scene()
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute(BREAK, (made.customer,))
    return scanned.found_once(outbox, object_=f"balance:{made.customer}")


@pytest.mark.parametrize(
    ("number", "what", "said"),
    [
        (1, "executions", "1 execution"),
        (48_213, "executions", "48,213 executions"),
        (1, "days at the provider", "1 day at the provider"),
        (0, "days at the provider", "0 days at the provider"),
    ],
)
def test_it_counts_one_thing_as_one(number: int, what: str, said: str) -> None:
    assert listing.counted(number, what) == said


def test_it_says_that_nothing_disagrees(browse: Browse, reviewer: Any, outbox: Any) -> None:
    client = browse(reviewer)
    assert "Not compared yet" in client.get("/reconcile/").content.decode()
    scanned.scan(outbox)
    page = client.get("/reconcile/").content.decode()
    assert "Nothing disagrees" in page
    assert "Balances match their entries." in page


def test_it_shows_both_sides_and_offers_what_fits(browse: Browse, reviewer: Any, differs: int) -> None:
    page = browse(reviewer).get("/reconcile/").content.decode()
    assert "The credit balance is €57.00, but its entries add up to €50.00." in page
    assert "1 of 2 facts differs" in page
    assert 'value="compensate"' in page
    assert "fits the evidence" in page
    assert "Every message has an end that is known." in page
    assert '<span class="count">1<span class="vh"> open</span></span>' in page


def test_it_says_why_an_exit_is_not_offered(browse: Browse, reviewer: Any, dead: int) -> None:
    page = browse(reviewer).get(f"/reconcile/{dead}/").content.decode()
    assert "We do not know whether this was carried out: charge €49.00" in page
    assert "not looked up yet" in page
    assert "Deliveries" in page
    assert "Replay the conversation" not in page


def test_a_reviewer_settles_it(browse: Browse, reviewer: Any, differs: int, outbox: Any) -> None:
    client = browse(reviewer)
    assert client.post(f"/reconcile/{differs}/choose/", {"kind": "compensate", "text": ""}).status_code == 422
    answer = client.post(f"/reconcile/{differs}/choose/", {"kind": "compensate", "text": "Explained by the bank."})
    assert answer.status_code == 302
    assert Decision.objects.get(escalation=differs).kind == "compensate"
    assert "It is settled." in client.get(f"/reconcile/{differs}/").content.decode()
    assert scanned.scan(outbox) == scanned.CLEAN, "it is known, and let stand"
    page = client.get("/reconcile/").content.decode()
    assert "1 let stand" in page
    assert "Balances match their entries." not in page
    late = browse(person("marco", "reviewer")).post(f"/reconcile/{differs}/choose/", {"kind": "compensate", "text": "Me too."})
    assert late.status_code == 409
    assert "priya already marked this as put right" in late.content.decode()


def test_an_exit_of_a_message_is_asked_of_the_outbox(browse: Browse, reviewer: Any, dead: int, web: Any) -> None:
    answer = browse(reviewer).post(f"/reconcile/{dead}/choose/", {"kind": "adopt", "text": "Found it there."})
    assert answer.status_code == 302
    assert row(web, dead) == "decided"
    asked = web.execute("SELECT kind, reason, requested_by, escalation FROM public.outbox_request").fetchall()
    assert asked == [("adopt", "Found it there.", reviewer.id, dead)]
    assert "A worker does it within seconds." in browse(reviewer).get(f"/reconcile/{dead}/").content.decode()


def test_a_reviewer_has_it_looked_up_once_more(browse: Browse, reviewer: Any, dead: int, web: Any) -> None:
    client = browse(reviewer)
    assert client.post(f"/reconcile/{dead}/look-up/").status_code == 302
    assert web.execute("SELECT kind FROM public.outbox_request").fetchall() == [("look_up",)]
    assert client.post(f"/reconcile/{dead}/look-up/").status_code == 409


def test_whoever_asked_for_it_looks_on(browse: Browse, dead: int, owner: Any) -> None:
    asker = person("asker", "reviewer", "support")
    owner.execute("UPDATE public.escalations_escalation SET requested_by = %s WHERE id = %s", (asker.id, dead))
    client = browse(asker)
    assert "Another reviewer has to settle it." in client.get(f"/reconcile/{dead}/").content.decode()
    assert client.post(f"/reconcile/{dead}/choose/", {"kind": "adopt", "text": "Mine."}).status_code == 409


def test_an_admin_reads_and_has_it_scanned(browse: Browse, differs: int) -> None:
    client = browse(person("ada", "admin"))
    assert "You may look on." in client.get("/reconcile/").content.decode()
    assert client.post("/reconcile/scan/").status_code == 302
    assert Scan.objects.latest("id").asked_by is not None
    assert "Scanning" in client.get("/reconcile/").content.decode()
    assert client.post(f"/reconcile/{differs}/choose/", {"kind": "compensate", "text": "x"}).status_code == 403


def test_a_scan_that_was_asked_for_is_carried_out_once(browse: Browse, reviewer: Any, outbox: Any) -> None:
    browse(reviewer).post("/reconcile/scan/")
    assert scanning.work(outbox, get=None) == 1
    assert scanning.work(outbox, get=None) == 0


def test_what_is_no_disagreement_is_not_found_here(browse: Browse, reviewer: Any, scene: Callable[..., Scene]) -> None:
    assert browse(reviewer).get(f"/reconcile/{scene().asked()}/").status_code == 404


def test_a_large_sum_waits_for_a_second_reviewer(browse: Browse, reviewer: Any, differs: int, owner: Any, web: Any) -> None:
    owner.execute(
        "INSERT INTO public.agent_policy (rule, tool, currency, value, reason, set_by)"
        " VALUES ('second_reviewer', 'QueueCharge', 'EUR', 100, 'Careful.', 1)"
    )
    client, given = browse(reviewer), {"kind": "compensate", "text": "A bank fee."}
    assert "above €1.00, a second reviewer" in client.get(f"/reconcile/{differs}/").content.decode()
    answer = client.post(f"/reconcile/{differs}/choose/", given, follow=True)
    assert "signed, 1 of 2" in answer.content.decode()
    assert "Priya signed that it was put right elsewhere." in answer.content.decode()
    assert row(web, differs) == "open"
    assert client.post(f"/reconcile/{differs}/choose/", given).status_code == 409
    assert browse(person("marco", "reviewer")).post(f"/reconcile/{differs}/choose/", given).status_code == 302
    assert row(web, differs) == "done"


def test_what_somebody_else_holds_is_not_settled(browse: Browse, reviewer: Any, differs: int, web: Any) -> None:
    lifecycle.claim(web, escalation=differs, user=person("marco", "reviewer").id)
    client = browse(reviewer)
    assert "Marco holds it." in client.get(f"/reconcile/{differs}/").content.decode()
    assert client.post(f"/reconcile/{differs}/choose/", {"kind": "compensate", "text": "Mine."}).status_code == 409


def test_its_case_leads_to_the_desk(browse: Browse, reviewer: Any, differs: int) -> None:
    page = browse(reviewer).get(f"/escalations/{differs}/").content.decode()
    assert f'href="/reconcile/{differs}/"' in page
    assert 'value="close"' not in page
