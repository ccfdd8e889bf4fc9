"""The story in the running instance: a conversation about a demo customer, through the rows that a page writes."""

import time
import uuid

from django.contrib.auth.models import User
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from agent import conversations, feeds, messages
from agent.models import Conversation, StaffMessage, Thread
from billing.models import Payment, Refund
from ledger import connections
from ledger.models import Execution, RowChange
from ledger.roles import SUPPORT
from outbox import bell
from sandbox.story import script
from sandbox.story.script import Counts, Telling

LOOK = 0.1  # seconds between two looks


class CannotTell(Exception):
    """The story cannot be told here now; the text says why."""


def begin(user: User | None = None) -> Conversation:
    """Send the story's message about a customer who has paid enough, and ring for the agent; raises CannotTell.

    Without a `user` the first support person sends it.
    """
    user = user or User.objects.filter(groups__name=SUPPORT, is_active=True).order_by("id").first()
    payment = _payment()
    if user is None or payment is None:
        missing = "no customer with a payment of €80.00 or more to refund" if user else "nobody with the role support"
        raise CannotTell(f"There is {missing}. Start an instance with its demo data: manage.py up.")
    conversation = conversations.create(subject=payment.customer_id, user=user)
    text = _message(payment)
    with connections.writing() as conn:
        messages.send(conn, thread=conversation.thread, message=uuid.uuid4(), author=user.pk, text=text)
    bell.ring("agent.drive", str(conversation.thread))
    return conversation


def planned() -> str:
    """Return the message that `begin` would send now; a past month stands in where nobody has paid enough."""
    payment = _payment()
    return _message(payment) if payment else f"{script.BEGINNING}October{script.ENDING}"


def _message(payment: Payment) -> str:
    return script.message(payment.invoice.billing_period, today=timezone.localdate())


def finish(conversation: Conversation, *, seconds: float) -> Telling:
    """Wait until the agent has answered, and for the provider's answer as long as there is time; raises CannotTell."""
    deadline = time.monotonic() + seconds
    while not (is_answered(conversation) and is_settled(conversation)) and time.monotonic() < deadline:
        time.sleep(LOOK)
    if not is_answered(conversation):
        late = f"{conversation} was not answered within {seconds:.0f} s."
        raise CannotTell(f"{late} Is an instance running? Start it with: manage.py up.")
    return tell(conversation)


def tell(conversation: Conversation) -> Telling:
    """Return the story as the rows have it: everything that this conversation ever inserted counts."""
    sent = StaffMessage.objects.filter(thread=conversation.thread).order_by("number").first()
    rows = conversations.read(conversation, everything=True)
    return Telling(
        message=sent.text if sent else "",
        at=conversation.created_at,
        items=_first_request(feeds.feed(rows, live=False)),
        counts=_counts(conversation.thread),
    )


def newest() -> Conversation | None:
    """Return the newest conversation in which the story's message was sent, by this command or by hand."""
    told = StaffMessage.objects.filter(text__startswith=script.BEGINNING, text__contains=script.MISTAKE, number=1)
    found: Conversation | None = Conversation.objects.filter(thread__in=told.values("thread")).order_by("-id").first()
    return found


def _payment() -> Payment | None:
    """Return the newest month's payment of which €80.00 can be refunded and credited, with no refund under way."""
    under_way = Refund.objects.filter(payment=OuterRef("pk"), status=Refund.Status.QUEUED)
    found: Payment | None = (
        Payment.objects.filter(
            ~Exists(under_way),
            currency="EUR",
            amount_minor__gte=F("refunded_minor") + script.AMOUNT,
            invoice__amount_minor__gte=F("invoice__credited_minor") + script.AMOUNT,
            invoice__billing_period__lte=timezone.localdate(),
            customer__provider_payment_method__isnull=False,
        )
        .select_related("invoice")
        .order_by("-invoice__billing_period", "id")
        .first()
    )
    return found


def is_answered(conversation: Conversation) -> bool:
    """Say whether the agent has done what it could: it is idle, or it waits for a person."""
    halted = Thread.objects.filter(thread=conversation.thread, state__in=[Thread.State.IDLE, Thread.State.WAITING])
    queued = StaffMessage.objects.filter(thread=conversation.thread, state=StaffMessage.State.QUEUED)
    return bool(halted.exists() and not queued.exists())


def waits(conversation: Conversation) -> bool:
    """Say whether a person has to decide before the story goes on."""
    return Thread.objects.filter(thread=conversation.thread, state=Thread.State.WAITING).exists()


def is_settled(conversation: Conversation) -> bool:
    """Say whether the provider has answered about every refund of the conversation."""
    refunds = [row.result["refund_id"] for row in Execution.objects.filter(thread=conversation.thread, tool="QueueRefund")]
    return not Refund.objects.filter(id__in=refunds, status=Refund.Status.QUEUED).exists()


def _counts(thread: uuid.UUID) -> Counts:
    """Count the rows that the conversation's steps inserted, in the changes that triggers recorded: no step can hide one."""
    attempts = Execution.objects.filter(thread=thread).values("attempt_id")
    inserted = RowChange.objects.filter(attempt_id__in=attempts, operation="INSERT")
    return Counts(
        memos=inserted.filter(table_name="billing_credit_memo").count(),
        deductions=inserted.filter(table_name="billing_credit_entry", after__kind="paid_out").count(),
        refunds=inserted.filter(table_name="billing_refund").count(),
    )


def _first_request(items: list[feeds.Item]) -> list[feeds.Item]:
    """Return what happened up to the next thing that staff asked for."""
    asked = [index for index, item in enumerate(items) if item.kind == "staff"]
    return [item for item in (items[: asked[1]] if len(asked) > 1 else items) if item.kind != "day"]
