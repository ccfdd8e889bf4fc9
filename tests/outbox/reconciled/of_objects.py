"""The provider's objects that do not fit to our messages."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from tests.outbox.desk import Row
from tests.outbox.reconciled import of_messages
from tests.outbox.reconciled.worlds import Scenario, World

ENDED = "UPDATE public.outbox_message SET state = %(state)s, finished_at = now(), provider_id = NULL WHERE id = %(id)s"
REFUSED = """
WITH refused AS (UPDATE public.billing_refund SET status = 'refused' WHERE id = %(refund)s)
UPDATE public.billing_payment SET refunded_minor = 0
"""


def _object(world: World, message: Row) -> str:
    kind = {"payment.refund": "refund", "payment.credit_note": "credit_note"}.get(message["topic"], "payment_intent")
    [made] = world.desk.provider.objects(kind, message["uid"])
    return f"object:{made['id']}"


def _called(world: World, message: Row, state: str) -> str:
    """Let our side have called refused what the provider did, and return the object."""
    world.by_hand(ENDED, id=message["id"], state=state)
    return _object(world, message)


def _lost(world: World, message: Row, path: str) -> Row:
    world.desk.provider.fault("after", "drop", path=path)
    world.desk.deliver_once()
    return message


def owed(world: World) -> str:
    message = _lost(world, world.desk.charge(), "/v1/payment_intents/[^/]+/confirm")
    world.by_hand("UPDATE public.billing_invoice SET status = 'charge_failed'")
    return _called(world, message, "rejected")


def not_owed(world: World) -> str:
    found = owed(world)
    world.by_hand("UPDATE public.billing_invoice SET status = 'void'")
    return found


def went_out(world: World) -> str:
    message = _lost(world, world.desk.refund(world.desk.paid()), "/v1/refunds")
    world.by_hand(REFUSED, refund=message["payload"]["refund_id"])
    return _called(world, message, "rejected")


def noted(world: World) -> str:
    """A credit note was issued, and called refused."""
    return _called(world, _lost(world, of_messages.noted(world), "/v1/credit_notes"), "rejected")


def came_back(world: World) -> str:
    message = world.desk.refund(world.desk.paid())
    world.desk.deliver()
    world.desk.provider.settle(str(world.desk.read(message)["provider_id"]), "failed")
    return _object(world, message)


def unasked(world: World) -> str:
    uid = str(uuid4())
    world.uids.add(uid)
    made = world.desk.provider.create("/v1/payment_intents", amount=700, currency="eur", **{"metadata[backstop_uid]": uid})
    return f"object:{made['id']}"


def _charged(world: World) -> Row:
    message = world.desk.charge()
    world.desk.deliver()
    return world.desk.read(message)


def differs(world: World) -> str:
    message = _charged(world)
    world.by_hand(
        "UPDATE public.outbox_message SET steps = jsonb_set(steps, '{0,params,amount}', '700') WHERE id = %(id)s",
        id=message["id"],
    )
    return _object(world, message)


def twice(world: World) -> str:
    message = _charged(world)
    asked: dict[str, Any] = message["steps"][0]["params"]
    params = {name: asked[name] for name in ("amount", "currency", "customer", "payment_method")}
    more = {"automatic_payment_methods[enabled]": "true", "automatic_payment_methods[allow_redirects]": "never"}
    world.desk.provider.create("/v1/payment_intents", **params, **more, **{"metadata[backstop_uid]": str(message["uid"])})
    return f"uid:{message['uid']}"


def gone(world: World) -> str:
    message = _charged(world)
    world.by_hand(
        "UPDATE public.outbox_message SET provider_id = 'pi_gone' WHERE id = %(id)s",
        "UPDATE public.billing_payment SET provider_payment_id = 'pi_gone'",
        id=message["id"],
    )
    return "object:pi_gone"


def of(make: Any, *, strays: tuple[str, ...] = (), **exits: str) -> Scenario:
    return Scenario(check="outbox.provider", make=make, exits=exits, strays=strays)


SCENARIOS: Mapping[str, Scenario] = {
    "contradicts: money that is owed": of(owed, adopt="succeeded paid", compensate=""),
    "contradicts: money that is owed to nobody": of(
        not_owed, adopt="succeeded void", refund="succeeded void", compensate="", strays=("adopt",)
    ),
    "contradicts: a refund went out after all": of(went_out, adopt="succeeded confirmed", compensate=""),
    "contradicts: a refund came back": of(came_back, adopt="succeeded reversed", compensate=""),
    "contradicts: a credit note was issued after all": of(noted, adopt="succeeded confirmed", compensate=""),
    "no_message": of(unasked, compensate=""),
    "no_object": of(gone, compensate=""),
    "differs": of(differs, compensate=""),
    "twice": of(twice, compensate=""),
}
