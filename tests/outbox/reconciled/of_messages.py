"""Messages whose end nobody knows: what the provider did of them, and what was seen of that."""

from collections.abc import Callable, Mapping

from tests.outbox import billed
from tests.outbox.desk import Row
from tests.outbox.reconciled.worlds import Scenario, World

CREATE, CONFIRM = "/v1/payment_intents", "/v1/payment_intents/[^/]+/confirm"
REFUND, NOTE = "/v1/refunds", "/v1/credit_notes"
HOUR_AGO = "first_sent_at = first_sent_at - interval '1 hour'"
DEAD = f"state = 'dead', {HOUR_AGO}"
GIVEN_UP = "attempts = attempts"  # by the relay, which asks about it at once


def lost(
    when: str, *, path: str = CONFIRM, card: str = "", change: str = DEAD, seen: bool = False, books: str = ""
) -> Callable[[World], str]:
    """Return what makes a message whose answer was lost before or after it took effect, and given up or so.

    `seen`: it was looked up since. `books`: a status that somebody gave its invoice or refund by hand.
    """

    def make(world: World) -> str:
        if card:
            world.desk.card(card)
        message = (
            noted(world) if path == NOTE else world.desk.refund(world.desk.paid()) if path == REFUND else world.desk.charge()
        )
        world.desk.provider.fault(when, "drop", path=path)
        if change == GIVEN_UP:
            world.desk.owner.execute("UPDATE public.outbox_message SET max_attempts = 1 WHERE id = %s", (message["id"],))
        world.desk.deliver_once()
        world.desk.owner.execute(f"UPDATE public.outbox_message SET {change} WHERE id = %s", (message["id"],))
        if seen:
            world.look_up(message)
        if books:
            _stand(world, message, books)
        return f"message:{message['id']}"

    return make


def noted(world: World) -> Row:
    """Return the credit note of a refund that went out, which was just queued."""
    invoice = world.desk.paid()
    billed.link(world.desk.owner, world.desk.provider, invoice=invoice)
    world.desk.refund(invoice)
    world.desk.deliver_once()
    return world.desk.newest()


def _stand(world: World, message: Row, status: str) -> None:
    table, key = ("refund", "refund_id") if "refund_id" in message["payload"] else ("invoice", "invoice_id")
    query = f"UPDATE public.billing_{table} SET status = %(status)s WHERE id = %(id)s"
    world.by_hand(query, status=status, id=message["payload"][key])


def of(make: Callable[[World], str], **exits: str) -> Scenario:
    return Scenario(check="outbox.messages", make=make, exits=exits)


NOTHING = "not possible: the provider has nothing of it, and the message is dead"
PAID, UNPAID = "succeeded paid", "rejected charge_failed"
BACK, KEPT = "succeeded confirmed", "rejected refused"
NEVER = f"{DEAD}, repeat = 'never', compensation_needed = true"
OLD_KEY = f"{DEAD}, key_deadline = now()"
MOVED = "not possible: the provider says succeeded"

SCENARIOS: Mapping[str, Scenario] = {
    "it moved": of(lost("after"), adopt=PAID, resend=PAID, settle_rejected=MOVED, compensate=UNPAID),
    "it moved, and the relay gave it up": of(
        lost("after", change=GIVEN_UP), adopt=PAID, resend=PAID, settle_rejected=MOVED, compensate=UNPAID
    ),
    "it moved, and is looked up now and then": of(lost("after", change=HOUR_AGO), adopt=PAID, resend=PAID, settle_rejected=MOVED),
    "it moved, and its books stand otherwise": of(
        lost("after", books="draft"), adopt=PAID, resend=PAID, settle_rejected=MOVED, compensate=UNPAID
    ),
    "it never arrived": of(lost("before", path=CREATE), adopt=NOTHING, resend=PAID, settle_rejected=UNPAID, compensate=UNPAID),
    "it never arrived, and was looked up": of(
        lost("before", path=CREATE, seen=True), resend=PAID, settle_rejected=UNPAID, compensate=UNPAID
    ),
    "it never arrived, and its key is old": of(
        lost("before", path=CREATE, seen=True, change=OLD_KEY), settle_rejected=UNPAID, compensate=UNPAID
    ),
    "it never arrived, and its books stand otherwise": of(
        lost("before", path=CREATE, seen=True, books="draft"), resend=PAID, settle_rejected=UNPAID, compensate=UNPAID
    ),
    "it is there, not confirmed": of(
        lost("before"),
        adopt="not possible: the provider says requires confirmation, and the message is dead",
        resend=PAID,
        settle_rejected=UNPAID,
        compensate=UNPAID,
    ),
    "it is there, not confirmed, and was looked up": of(
        lost("before", seen=True), resend=PAID, settle_rejected=UNPAID, compensate=UNPAID
    ),
    "it was declined": of(
        lost("after", card="pm_card_chargeCustomerFail"),
        adopt=UNPAID,
        resend=UNPAID,
        settle_rejected=UNPAID,
        compensate=UNPAID,
    ),
    "it may not be repeated": of(
        lost("before", path=CREATE, change=NEVER), adopt=NOTHING, settle_rejected=UNPAID, compensate=UNPAID
    ),
    "a refund went out": of(lost("after", path=REFUND), adopt=BACK, resend=BACK, settle_rejected=MOVED, compensate=KEPT),
    "a refund never arrived": of(lost("before", path=REFUND, seen=True), resend=BACK, settle_rejected=KEPT, compensate=KEPT),
    "a credit note was issued": of(
        lost("after", path=NOTE),
        adopt="succeeded confirmed",
        resend="succeeded confirmed",
        settle_rejected="not possible: the provider says issued",
        compensate="rejected confirmed",
    ),
    "a credit note never arrived": of(
        lost("before", path=NOTE, seen=True),
        resend="succeeded confirmed",
        settle_rejected="rejected confirmed",
        compensate="rejected confirmed",
    ),
    "a refund is on its way": of(
        lost("after", path=REFUND, card="pm_card_pendingRefund"),
        adopt="accepted queued",
        resend="accepted queued",
        settle_rejected="not possible: the provider says pending",
        compensate=KEPT,
    ),
}
