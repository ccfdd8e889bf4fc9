"""Find any id: ours or the provider's, as people write it, for each role."""

import uuid
from collections.abc import Callable
from typing import Any

from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ledger import ids
from tests import databases
from tests.escalations.conftest import browse, scene
from tests.escalations.scenes import Scene, person

__all__ = ["browse", "scene"]
Begin = Callable[..., Scene]
Browse = Callable[[Any], Client]


def test_a_miss_reads_no_whole_table(database: None, superuser: Any) -> None:
    """Every id is looked up, so every lookup needs its index; an empty table alone would be read as a whole."""
    databases.renew(superuser)
    with transaction.atomic(), connection.cursor() as cursor, CaptureQueriesContext(connection) as asked:
        for scan in ("seqscan", "indexscan", "indexonlyscan"):  # in an empty table the key's order is as good as an index
            cursor.execute(f"SET LOCAL enable_{scan} = off")
        assert ids.find("no-such-id", roles=frozenset({"admin", "reviewer"})) is None
        lookups = [found["sql"] for found in asked.captured_queries if found["sql"].startswith("SELECT")]
        assert len(lookups) >= 3
        for lookup in lookups:
            cursor.execute(f"EXPLAIN {lookup}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "Index Cond" in plan, plan
            assert "Seq Scan" not in plan, plan


def test_any_id_leads_to_its_page(scene: Begin, browse: Browse, superuser: Any) -> None:
    made = scene()
    escalation = made.payment()
    message, uid, key = made.owner.execute("SELECT id, uid, dedupe_key FROM public.outbox_message").fetchone()
    (conversation,) = made.owner.execute("SELECT id FROM public.agent_conversation").fetchone()
    (attempt,) = made.owner.execute(
        "SELECT attempt_id::text FROM public.ledger_attempt_outcome WHERE outcome = 'committed' ORDER BY closed_at LIMIT 1"
    ).fetchone()
    superuser.execute(
        "INSERT INTO public.outbox_webhook_event (event_id, type, object_id, payload)"
        " SELECT 'evt_1', 'payment_intent.succeeded', provider_id, '{}' FROM public.outbox_message"
    )
    (untouched,) = made.owner.execute(
        "INSERT INTO public.billing_invoice (customer_id, billing_period, currency, amount_minor, amount_due_minor)"
        " VALUES (%s, '2026-01-01', 'EUR', 1, 1) RETURNING id",
        (made.customer,),
    ).fetchone()
    here = {
        "conversation": f"/conversations/{conversation}/", "escalation": f"/escalations/{escalation}/",
        "attempt": f"/audit/attempts/{attempt}/", "message": f"/outbox/{message}/", None: None,
        "their conversations": f"/conversations/?only=all&q={made.customer}", "their trail": f"/audit/?customer={made.customer}",
    }  # fmt: skip
    # what was typed → where support, reviewer and admin get
    expected = {
        f"C-{conversation}": ("conversation", "conversation", "conversation"),
        f" c-{conversation} ": ("conversation", "conversation", "conversation"),
        str(made.thread): ("conversation", "conversation", "conversation"),
        f"E-{escalation}": (None, "escalation", "escalation"),
        attempt: (None, "attempt", "attempt"),
        f"M-{message}": (None, None, "message"),
        str(uid): ("conversation", "attempt", "message"),
        f"pi_test_{message}": ("conversation", "attempt", "message"),
        key: ("conversation", "attempt", "message"),
        "evt_1": ("conversation", "attempt", "message"),
        "call-1": (None, "attempt", "attempt"),
        f"C{conversation}": ("conversation", "conversation", "conversation"),
        f"e{escalation}": (None, "escalation", "escalation"),
        "invoice 1": ("conversation", "attempt", "attempt"),
        " Invoice #1": ("conversation", "attempt", "attempt"),
        f"invoice {untouched}": ("their conversations", "their trail", "their trail"),  # no call ever named it
        "nonsense 1": (None, None, None),
        "invoice 999": (None, None, None),
        f"customer {made.customer}": ("their conversations", "their trail", "their trail"),
        "customer 999": (None, None, None),
        "C-999": (None, None, None),
        "E-999": (None, None, None),
        "pi_nothing": (None, None, None),
        str(uuid.uuid4()): (None, None, None),
        "\x00": (None, None, None),
        "' OR 1=1 --": (None, None, None),
        "x" * 300: (None, None, None),
    }
    for place, role in enumerate(("support", "reviewer", "admin")):
        client = browse(person(role, role))
        for text, pages in expected.items():
            response = client.get("/find/", {"q": text})
            assert response.headers.get("Location") == here[pages[place]], (role, text)
            assert response.status_code == (302 if pages[place] else 404)
    assert browse(person("admin", "admin")).get("/find/").status_code == 200
