"""The page of the Stripe sandbox: for admins of a demonstration; it shows and changes what the sandbox's control API says."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from django.conf import settings as configured
from django.test import Client, override_settings

from sandbox.console import mishaps
from sandbox.servers import identities
from sandbox.stripe import faults
from sandbox.supervisor import instances
from sandbox.supervisor.records import Record
from tests.agent.scenes import make_user
from tests.sandbox.stripe.conftest import Shop
from tests.sandbox.stripe.process import KEY, Sandbox, running

TABS = ("/sandbox/", "/sandbox/money/", "/sandbox/faults/", "/sandbox/webhooks/", "/sandbox/clock/")
POSTS = ("faults/add/", "faults/lift/", "faults/limit/", "webhooks/behave/", "webhooks/forge/", "clock/advance/", "settle/")
NOBODY = "http://127.0.0.1:9/"  # nothing listens there
MESSAGE = """
INSERT INTO public.outbox_message (uid, topic, destination, aggregate, dedupe_key, subject, payload, steps, repeat)
VALUES (%(uid)s, 'payment.charge', 'stripe', 'invoice:1', 'charge:invoice:1:1', 1, '{}', '[]', 'keyed') RETURNING id
"""


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Run one Stripe sandbox for these tests."""
    with running(tmp_path_factory.mktemp("console") / "data", webhook_url=NOBODY) as sandbox:
        sandbox.control("webhooks", {"action": "pause"})
        yield sandbox


@pytest.fixture
def here(database: None, provider: Sandbox, tmp_path: Path) -> Iterator[Path]:
    """Make this process look like the web process of a demonstration whose Stripe sandbox is this one."""
    provider.control("faults", method="DELETE")
    content = {
        "database": {"superuser": "postgresql://", configured.LOGIN: configured.DATABASE_URL},
        "stripe": {"api_base": provider.base, "api_key": KEY, "webhook_secret": "whsec_x"},
    }
    for name in ("run", "valkey", "postgres"):
        (tmp_path / name).mkdir()
    instances.write(tmp_path, content)
    Record(file=tmp_path / "processes.json", state="ready", supervisor=identities.of(os.getpid())).write()
    with override_settings(DATA_DIR=tmp_path):
        yield tmp_path


def client(role: str) -> Client:
    made = Client()
    made.force_login(make_user(role), backend="django.contrib.auth.backends.ModelBackend")
    return made


@pytest.fixture
def admin(here: Path) -> Client:
    return client("admin")


def text(admin: Client, path: str) -> str:
    answer = admin.get(path)
    assert answer.status_code == 200, answer
    return str(answer.content.decode())


def does(admin: Client, path: str, **wish: object) -> str:
    """Post a wish and return the page that it leads to."""
    answer = admin.post(f"/sandbox/{path}", wish, follow=True)
    assert answer.status_code == 200, answer.content.decode()
    return str(answer.content.decode())


def test_only_admins_are_let_in(here: Path) -> None:
    support, reviewer, admin = (client(role) for role in ("support", "reviewer", "admin"))
    for other in (support, reviewer):
        assert {other.get(path).status_code for path in TABS} == {403}
        assert {other.post(f"/sandbox/{path}").status_code for path in POSTS} == {403}
        assert 'href="/sandbox/"' not in other.get("/conversations/").content.decode()
    assert {admin.get(path).status_code for path in TABS} == {200}
    assert 'href="/sandbox/"' in admin.get("/audit/").content.decode()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(make_user("admin"), backend="django.contrib.auth.backends.ModelBackend")
    assert {strict.post(f"/sandbox/{path}").status_code for path in POSTS} == {403}


def absent(admin: Client) -> None:
    assert {admin.get(path).status_code for path in TABS} == {404}
    assert {admin.post(f"/sandbox/{path}").status_code for path in POSTS} == {404}
    assert 'href="/sandbox/"' not in admin.get("/audit/").content.decode()


def test_it_exists_in_a_demonstration_only(here: Path, admin: Client) -> None:
    with override_settings(PRODUCTION=True):
        absent(admin)
    content = instances.read(here)
    instances.write(here, content | {"stripe": {}})  # a real key: no sandbox runs
    absent(admin)
    instances.write(here, content)
    (here / "processes.json").unlink()
    absent(admin)


@pytest.mark.parametrize("stripe", [{"api_base": "https://api.stripe.com"}, {"api_key": "sk_live_x"}])
def test_it_never_asks_the_real_stripe(here: Path, admin: Client, stripe: dict[str, str]) -> None:
    content = instances.read(here)
    instances.write(here, content | {"stripe": content["stripe"] | stripe})
    assert admin.get("/sandbox/").status_code == 503


def test_objects_are_shown_with_what_can_become_of_them(provider: Sandbox, admin: Client) -> None:
    shop = Shop(provider.client())
    mine, other = shop.charge(metadata={"backstop_uid": str(uuid4())}), shop.charge(metadata={"backstop_uid": "odd"})
    page = text(admin, "/sandbox/?kind=payment_intent")
    assert "Payment of €10.00" in page
    assert page.index(other.id) < page.index(mine.id)  # the newest first
    assert "&quot;latest_charge&quot;" in page  # the raw object
    assert "M-" not in page
    assert "Ada" in text(admin, "/sandbox/?kind=customer")
    assert "Nothing has this id" in text(admin, "/sandbox/?q=pi_none")
    refund = shop.refund(mine)
    assert "Let it fail" in text(admin, f"/sandbox/?q={refund.id}")
    answer = admin.post(f"/sandbox/settle/?q={refund.id}", {"id": refund.id, "status": "failed", "from": "objects"})
    assert answer.headers["Location"] == f"/sandbox/?q={refund.id}"  # the reader stays where they were
    assert "Failed" in text(admin, answer.headers["Location"])
    assert provider.client().v1.refunds.retrieve(refund.id).status == "failed"


def test_what_a_message_made_links_to_it(provider: Sandbox, admin: Client, superuser: psycopg.Connection) -> None:
    uid = uuid4()
    (number,) = superuser.execute(MESSAGE, {"uid": uid}).fetchone() or (None,)
    intent = Shop(provider.client()).charge(metadata={"backstop_uid": str(uid)})
    assert f'<a href="/outbox/{number}/">M-{number}</a>' in text(admin, f"/sandbox/?q={intent.id}")
    assert f'<a href="/outbox/{number}/">M-{number}</a>' in text(admin, "/sandbox/money/")


def test_lists_have_pages(provider: Sandbox, admin: Client) -> None:
    v1 = provider.client().v1
    made = [v1.customers.create({"name": f"Customer {number}"}).id for number in range(26)]
    first = admin.get("/sandbox/?kind=customer")
    assert (made[25] in first.content.decode(), made[0] in first.content.decode()) == (True, False)
    assert made[0] in text(admin, f"/sandbox/?kind=customer&before={first.context['older']}")
    assert "kind=customer&amp;before=" in first.content.decode()


def test_money_is_summed_per_currency(provider: Sandbox, admin: Client) -> None:
    shop = Shop(provider.client())
    shop.refund(shop.charge(currency="isk", amount=150_000), amount=50_000)
    page = text(admin, "/sandbox/money/")
    assert "ISK 1,500" in page  # Stripe's units have two decimals more
    assert "-ISK 500" in page
    assert "ISK 1,000" in page


def test_a_fault_is_let_in_and_lifted(provider: Sandbox, admin: Client) -> None:
    wish = {"target": "refund", "mishap": "before:429", "count": "2", "share": "50", "seconds": "7"}
    page = does(admin, "faults/add/", **wish)
    assert "2 more calls, 50% of those that fit" in page
    (rule,) = provider.control("faults")["faults"]
    said = {name: rule[name] for name in ("when", "mode", "method", "path", "count", "probability", "seconds")}
    assert said == {
        "when": "before", "mode": "429", "method": "POST", "path": "/v1/refunds", "count": 2, "probability": 0.5, "seconds": 7,
    }  # fmt: skip
    does(admin, "faults/add/", **wish | {"count": "", "share": "100"})
    assert "Every call, until lifted" in text(admin, "/sandbox/faults/")
    does(admin, "faults/lift/", fault=rule["id"])
    assert len(provider.control("faults")["faults"]) == 1
    assert "Nothing goes wrong" in does(admin, "faults/lift/")


def test_calls_a_second_are_limited(provider: Sandbox, admin: Client) -> None:
    page = does(admin, "faults/limit/", per_second="25", per_endpoint="")
    assert ("Limited" in page, provider.control("limit")["per_second"]) == (True, 25)
    assert "Not limited" in does(admin, "faults/limit/", per_second="", per_endpoint="")
    assert provider.control("limit") == {"per_second": None, "per_endpoint": None, "refused": 0}


def test_every_fault_of_the_sandbox_can_be_chosen_in_words(provider: Sandbox, admin: Client) -> None:
    every = {(when, mode) for when, modes in faults.MODES.items() for mode in modes}
    assert every == set(mishaps.WORDS)
    for when, mode in every:
        wish = {"target": "create", "mishap": f"{when}:{mode}", "count": "1", "share": "100", "seconds": "0"}
        assert admin.post("/sandbox/faults/add/", wish).status_code == 302
    assert {(rule["when"], rule["mode"]) for rule in provider.control("faults")["faults"]} == every


def test_a_form_that_makes_no_sense_is_answered_beside_its_field(provider: Sandbox, admin: Client) -> None:
    wish = {"target": "refund", "mishap": "before:429", "count": "0", "share": "100", "seconds": "0"}
    answer = admin.post("/sandbox/faults/add/", wish)
    assert answer.status_code == 422
    assert "Write how many calls as a whole number from 1 to 10,000." in answer.content.decode()
    strip = admin.post("/sandbox/faults/add/", wish, headers={"HX-Request": "true"})
    assert (strip.status_code, "Nothing was changed" in strip.content.decode()) == (422, True)
    for path, given in (("clock/advance/", {"amount": "400", "unit": "86400"}), ("webhooks/behave/", {"action": "delay"})):
        assert admin.post(f"/sandbox/{path}", given).status_code == 422
    assert provider.control("faults")["faults"] == []


def test_the_clock_goes_forward(provider: Sandbox, admin: Client) -> None:
    shop = Shop(provider.client())
    refund = shop.refund(shop.charge("pm_card_pendingRefund"))
    stays = shop.charge("pm_card_sandboxProcessingStays")
    page = text(admin, "/sandbox/clock/")
    assert (refund.id in page, "nothing ends it by itself" in page) == (True, True)
    before = provider.control("clock")["ahead"]
    page = does(admin, "clock/advance/", amount="25", unit="3600")
    assert (provider.control("clock")["ahead"] - before, refund.id in page) == (25 * 3600, False)
    assert "1 d 1 h" in page
    assert stays.id not in does(admin, "settle/", id=stays.id, status="succeeded")
    assert "cannot become succeeded" in does(admin, "settle/", id=stays.id, status="succeeded")


def test_webhooks_go_as_an_admin_says(provider: Sandbox, admin: Client) -> None:
    customer = provider.client().v1.customers.create({"name": "Ada"}).id
    page = text(admin, "/sandbox/webhooks/")
    assert (customer in page, "Paused" in page, "customer.created" in page) == (True, True, True)
    newest = provider.control("webhooks?limit=1")["deliveries"][0]["event"]
    does(admin, "webhooks/behave/", action="resend", event=newest)
    does(admin, "webhooks/behave/", action="twin", event=newest)
    twin, again, *_ = provider.control("webhooks?limit=3")["deliveries"]
    assert (again["event"], twin["event"] != newest, twin["object"]) == (newest, True, customer)
    assert "did not answer" in does(admin, "webhooks/forge/", event=newest, how="old")  # nobody listens
    for action, number in (("delay", 90), ("duplicate", 3), ("drop", 2)):
        does(admin, "webhooks/behave/", action=action, number=number)
    page = does(admin, "webhooks/behave/", action="reorder")
    for words in ("Late by 90 s", "Each 3 times", "The next 2 are left out", "Oldest first"):
        assert words in page
    assert "Sent" in does(admin, "webhooks/behave/", action="normal")
    provider.control("webhooks", {"action": "pause"})


def test_one_sentence_says_that_the_sandbox_does_not_answer(here: Path, admin: Client) -> None:
    content = instances.read(here)
    instances.write(here, content | {"stripe": content["stripe"] | {"api_base": f"http://127.0.0.1:{instances.free_port()}"}})
    answer = admin.get("/sandbox/money/")
    assert (answer.status_code, "does not answer" in answer.content.decode()) == (503, True)
    assert admin.get("/sandbox/money/", headers={"HX-Request": "true"}).status_code == 200
    done = admin.post("/sandbox/clock/advance/", {"amount": "1", "unit": "3600"}, follow=True)
    assert "it may have done it or not" in done.content.decode()
