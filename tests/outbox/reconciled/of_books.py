"""Invoices, refunds, payments and balances that stand otherwise than their messages, or than their own entries."""

from collections.abc import Callable, Mapping

from outbox import requests
from tests.billing import makers
from tests.outbox.desk import Row
from tests.outbox.reconciled.worlds import Scenario, World

INVOICE = """
UPDATE public.billing_invoice SET status = %(status)s, paid_at = CASE WHEN %(status)s = 'paid' THEN now() END,
    amount_due_minor = coalesce(%(due)s, amount_due_minor)
"""
DEAD = "UPDATE public.outbox_message SET state = 'dead' WHERE id = %s"
FREED = "UPDATE public.billing_payment SET refunded_minor = 0"


def _asked(world: World, message: Row, kind: str) -> None:
    requests.ask(world.web, message=message["id"], kind=kind, reason="As it should be.", user=7)
    world.carry_out()


def _brought(world: World, message: Row, state: str) -> Row:
    """Bring a message that was just queued to a state, as it comes there by itself or by a person."""
    if state == "succeeded":
        world.desk.deliver()
    elif state == "cancelled":
        _asked(world, message, "cancel")
    elif state == "rejected":
        world.desk.provider.fault("before", "drop", path=message["steps"][0]["path"])
        world.desk.deliver_once()
        world.desk.owner.execute(DEAD, (message["id"],))
        _asked(world, message, "settle_rejected")
    found = world.desk.read(message)
    assert found["state"] == state
    return found


def invoice(state: str, status: str, *, payment: str = "as it is", due: int | None = None) -> Callable[[World], str]:
    """Return what makes an invoice in this status whose charge is in that state; its payment may be gone, or another one."""

    def make(world: World) -> str:
        message = _brought(world, world.desk.charge(), state)
        number = message["payload"]["invoice_id"]
        world.by_hand(INVOICE, status=status, due=due)
        if payment == "gone":
            world.by_hand("DELETE FROM public.billing_payment")
        elif payment == "another":
            makers.make_payment(world.desk.owner, invoice_id=number)
        return f"invoice:{number}"

    return make


def paid_before(world: World, state: str, status: str) -> str:
    """An earlier charge has paid it; a later one was made all the same."""
    message = _brought(world, world.desk.charge(), "succeeded")
    number = message["payload"]["invoice_id"]
    world.by_hand(INVOICE, status="charge_failed", due=None)
    _brought(world, world.desk.charge_again(number), state)
    world.by_hand(INVOICE, status=status, due=None)
    return f"invoice:{number}"


def unasked(world: World) -> str:
    """It was charged, and no message says so."""
    number = makers.make_invoice(world.desk.owner, customer_id=world.desk.customer, status="charge_queued")
    return f"invoice:{number}"


def nameless(world: World) -> str:
    """The provider knows no such object."""
    found = invoice("succeeded", "charge_queued", payment="gone")(world)
    world.by_hand("UPDATE public.outbox_message SET provider_id = 'pi_gone', first_sent_at = now() - interval '9 days'")
    return found


def refund(state: str, status: str, *, change: str = "") -> Callable[[World], str]:
    """Return what makes a refund in this status whose message is in that state; `change` is done by hand besides."""

    def make(world: World) -> str:
        message = _brought(world, world.desk.refund(world.desk.paid()), state)
        number = message["payload"]["refund_id"]
        world.by_hand("UPDATE public.billing_refund SET status = %(status)s WHERE id = %(id)s", status=status, id=number)
        if change:
            world.by_hand(change)
        return f"refund:{number}"

    return make


def beside_another(world: World) -> str:
    found = refund("rejected", "confirmed")(world)
    world.desk.refund(int(world.desk.one("SELECT id FROM public.billing_invoice")["id"]))
    return found


def less_left(world: World) -> str:
    found = refund("succeeded", "refused", change=FREED)(world)
    world.desk.refund(int(world.desk.one("SELECT id FROM public.billing_invoice")["id"]), 48_000)
    return found


def came_back(world: World) -> str:
    message = _brought(world, world.desk.refund(world.desk.paid()), "succeeded")
    world.desk.provider.settle(str(message["provider_id"]), "failed")
    world.by_hand("UPDATE public.outbox_message SET provider_status = 'failed' WHERE id = %(id)s", id=message["id"])
    return f"refund:{message['payload']['refund_id']}"


def balance(world: World) -> str:
    world.by_hand("UPDATE public.billing_credit_account SET balance_minor = balance_minor + 700")
    return f"balance:{world.desk.customer}"


def stray(world: World) -> str:
    """Money was taken for what is void; whoever was asked about it has closed the question."""
    message = _brought(world, world.desk.charge(), "succeeded")
    world.by_hand("UPDATE public.billing_payment SET stray = true", "UPDATE public.billing_invoice SET status = 'void'")
    return f"message:{message['id']}"


def unknown_stray(world: World) -> str:
    number = makers.make_invoice(world.desk.owner, customer_id=world.desk.customer)
    return f"payment:{makers.make_payment(world.desk.owner, invoice_id=number, stray=True)}"


def of_invoice(make: Callable[[World], str], *, strays: tuple[str, ...] = (), **exits: str) -> Scenario:
    return Scenario(check="billing.invoices", make=make, exits=exits | {"compensate": ""}, strays=strays)


def of_refund(make: Callable[[World], str], **exits: str) -> Scenario:
    return Scenario(check="billing.refunds", make=make, exits=exits | {"compensate": ""})


PAID, STRAY = {"adopt": "succeeded paid"}, ("adopt",)
INVOICES: Mapping[str, Scenario] = {
    "charged, and its payment is missing": of_invoice(invoice("succeeded", "charge_queued", payment="gone"), **PAID),
    "charged, and called failed": of_invoice(invoice("succeeded", "charge_failed"), **PAID),
    "charged, and a draft": of_invoice(invoice("succeeded", "draft", payment="gone"), **PAID),
    "charged, and paid without its payment": of_invoice(invoice("succeeded", "paid", payment="gone"), **PAID),
    "charged, and less is due": of_invoice(
        invoice("succeeded", "draft", payment="gone", due=700), adopt="succeeded draft", strays=STRAY
    ),
    "charged, and void": of_invoice(invoice("succeeded", "void", payment="gone"), adopt="succeeded void", strays=STRAY),
    "charged, and void with its payment": of_invoice(invoice("succeeded", "void"), adopt="succeeded void", strays=STRAY),
    "charged, and paid with less": of_invoice(invoice("succeeded", "paid", due=700)),
    "charged, and paid without a charge": of_invoice(
        invoice("succeeded", "paid", payment="gone", due=0), adopt="succeeded paid", strays=STRAY
    ),
    "charged, and the provider knows nothing of it": of_invoice(
        nameless,
        adopt="not possible: the provider says the look-up was refused: 404 resource missing, and the message is succeeded",
    ),
    "refused, and under way": of_invoice(invoice("rejected", "charge_queued"), adopt="rejected charge_failed"),
    "refused, and a draft": of_invoice(invoice("rejected", "draft"), adopt="rejected charge_failed"),
    "refused, and paid": of_invoice(invoice("rejected", "paid"), adopt="rejected charge_failed"),
    "refused, and paid with another payment": of_invoice(invoice("rejected", "paid", payment="another")),
    "withdrawn, and under way": of_invoice(invoice("cancelled", "charge_queued"), adopt="cancelled draft"),
    "withdrawn, and paid": of_invoice(invoice("cancelled", "paid"), adopt="cancelled draft"),
    "queued, and a draft": of_invoice(invoice("ready", "draft"), adopt="ready charge_queued"),
    "queued, and paid": of_invoice(invoice("ready", "paid"), adopt="ready charge_queued"),
    "queued, and void": of_invoice(invoice("ready", "void")),
    "queued, and less is due": of_invoice(invoice("ready", "draft", due=700)),
    "paid by an earlier charge, and called failed": of_invoice(
        lambda world: paid_before(world, "rejected", "charge_failed"), **PAID
    ),
    "paid by an earlier charge, and charged again": of_invoice(
        lambda world: paid_before(world, "ready", "charge_queued"), adopt="succeeded charge_queued", strays=STRAY
    ),
    "under way without a message": of_invoice(unasked),
}
REFUNDS: Mapping[str, Scenario] = {
    "went out, and under way": of_refund(refund("succeeded", "queued"), adopt="succeeded confirmed"),
    "went out, and called refused": of_refund(refund("succeeded", "refused", change=FREED), adopt="succeeded confirmed"),
    "went out, and called refused, its amount not free": of_refund(refund("succeeded", "refused"), adopt="succeeded confirmed"),
    "went out, and called back": of_refund(refund("succeeded", "reversed")),
    "went out, and there is less left": of_refund(less_left),
    "came back, and confirmed": of_refund(came_back, adopt="succeeded reversed"),
    "refused, and under way ": of_refund(refund("rejected", "queued"), adopt="rejected refused"),
    "refused, and confirmed": of_refund(refund("rejected", "confirmed"), adopt="rejected refused"),
    "refused, and confirmed beside another": of_refund(beside_another),
    "refused, and called back": of_refund(refund("rejected", "reversed")),
    "refused, and called withdrawn": of_refund(refund("rejected", "withdrawn"), adopt="rejected refused"),
    "withdrawn, and under way ": of_refund(refund("cancelled", "queued"), adopt="cancelled withdrawn"),
    "withdrawn, and confirmed": of_refund(refund("cancelled", "confirmed"), adopt="cancelled withdrawn"),
    "queued, and confirmed": of_refund(refund("ready", "confirmed"), adopt="ready queued"),
    "queued, and called refused": of_refund(refund("ready", "refused", change=FREED), adopt="ready queued"),
    "without a message": of_refund(
        refund("succeeded", "confirmed", change="DELETE FROM public.outbox_message WHERE topic = 'payment.refund'")
    ),
}
OTHERS: Mapping[str, Scenario] = {
    "a balance differs": Scenario(check="billing.balances", make=balance, exits={"compensate": ""}),
    "money is owed to nobody": Scenario(
        check="billing.payments", make=stray, exits={"refund": "succeeded void", "compensate": ""}
    ),
    "money is owed to nobody, and no message took it": Scenario(
        check="billing.payments", make=unknown_stray, exits={"compensate": ""}
    ),
}
SCENARIOS: Mapping[str, Scenario] = {**INVOICES, **{f"refund: {name}": one for name, one in REFUNDS.items()}, **OTHERS}
