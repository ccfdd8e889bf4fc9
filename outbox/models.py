"""Messages and the evidence of their delivery; written by the psycopg verbs beside this file."""

import uuid

from django.db import models
from django.db.models.functions import Now


class Message(models.Model):
    """A promised external effect, committed with its cause. Times are the database's."""

    class State(models.TextChoices):
        READY = "ready"
        LEASED = "leased"
        ACCEPTED = "accepted"  # the provider has it, not final
        UNCERTAIN = "uncertain"  # bytes may have reached the provider; no answer is recorded
        SUCCEEDED = "succeeded"
        REJECTED = "rejected"  # the provider's definitive no
        DEAD = "dead"  # a person must look
        CANCELLED = "cancelled"  # withdrawn before any send

    class Repeat(models.TextChoices):
        KEYED = "keyed"
        HARMLESS = "harmless"
        NEVER = "never"

    id = models.BigAutoField(primary_key=True)
    uid = models.UUIDField(default=uuid.uuid4, db_default=models.Func(function="gen_random_uuid"), unique=True)
    topic = models.TextField()  # such as payment.charge, payment.refund, notify.email
    destination = models.TextField()  # such as stripe
    aggregate = models.TextField()  # such as invoice:42; one message of it in flight
    dedupe_key = models.TextField()  # names the fact and its attempt: charge:invoice:42:1
    subject = models.BigIntegerField(null=True)
    thread = models.UUIDField(null=True)
    ai_message_id = models.TextField(null=True)
    call_index = models.IntegerField(null=True)
    payload = models.JSONField()  # what the handler needs to settle: ids and amounts of ours
    steps = models.JSONField()  # frozen requests: [{"name", "method", "path", "params", "key"}]
    account = models.TextField(default="", db_default="")
    api_version = models.TextField(default="", db_default="")
    repeat = models.TextField(choices=Repeat.choices)
    state = models.TextField(choices=State.choices, default=State.READY, db_default=State.READY)
    claimed_from = models.TextField(null=True)  # the state before the lease: where an unsent message goes back to
    step = models.IntegerField(default=0, db_default=0)  # index into steps: the next to send
    provider_id = models.TextField(null=True)
    provider_status = models.TextField(null=True)
    seen = models.JSONField(null=True)  # the provider's object as it was last seen, for people who compare it with the request
    refusal = models.TextField(null=True)  # the provider's code for a refusal, such as insufficient_funds
    last_error = models.TextField(null=True)
    outcome_source = models.TextField(null=True)  # response, lookup, webhook, person
    attempts = models.IntegerField(default=0, db_default=0)
    sends = models.IntegerField(default=0, db_default=0)
    spared = models.IntegerField(default=0, db_default=0)  # tries that used up no attempt: not sent, or everybody was refused
    max_attempts = models.IntegerField(default=12, db_default=12)
    ever_unknown = models.BooleanField(default=False, db_default=False)
    compensation_needed = models.BooleanField(default=False, db_default=False)
    blocked = models.BooleanField(default=False, db_default=False)  # an older one of its aggregate was unfinished at insert
    undo_until = models.DateTimeField(null=True)  # staff may take it back until then; null: it leaves at once
    next_attempt_at = models.DateTimeField(db_default=Now())
    give_up_at = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    lease_owner = models.TextField(null=True)
    leased_until = models.DateTimeField(null=True)
    sending_at = models.DateTimeField(null=True)  # written before each call: no answer after it means unknown
    first_sent_at = models.DateTimeField(null=True)
    key_deadline = models.DateTimeField(null=True)  # re-send with the same key until then; null: not sent with it yet
    key_generation = models.IntegerField(default=1, db_default=1)  # of the current step's key
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dedupe_key"], name="outbox_message_once"),
            models.UniqueConstraint(
                fields=["aggregate"], condition=models.Q(state="leased"), name="outbox_message_one_in_flight"
            ),
            models.CheckConstraint(
                name="outbox_message_state_known",
                condition=models.Q(
                    state__in=["ready", "leased", "accepted", "uncertain", "succeeded", "rejected", "dead", "cancelled"]
                ),
            ),
            models.CheckConstraint(
                name="outbox_message_repeat_known", condition=models.Q(repeat__in=["keyed", "harmless", "never"])
            ),
            models.CheckConstraint(
                name="outbox_message_leased_has_lease",
                condition=models.Q(
                    state="leased",
                    lease_token__isnull=False,
                    leased_until__isnull=False,
                    claimed_from__in=["ready", "accepted", "uncertain"],
                )
                | (
                    ~models.Q(state="leased")
                    & models.Q(lease_token__isnull=True, leased_until__isnull=True, claimed_from__isnull=True)
                ),
            ),
            models.CheckConstraint(
                name="outbox_message_final_is_finished",
                condition=~models.Q(state__in=["succeeded", "rejected", "cancelled"]) | models.Q(finished_at__isnull=False),
            ),
            models.CheckConstraint(
                name="outbox_message_cancelled_unsent",
                condition=~models.Q(state="cancelled") | models.Q(first_sent_at__isnull=True),
            ),
        ]
        indexes = [
            # claim: the oldest due message of a destination; what waits behind an older one is not in it
            models.Index(
                fields=["destination", "next_attempt_at", "id"],
                condition=models.Q(state__in=["ready", "uncertain", "accepted"], blocked=False),
                name="outbox_message_due",
            ),
            # claim: is an older message of this aggregate unfinished?
            models.Index(
                fields=["aggregate", "id"],
                condition=models.Q(state__in=["ready", "leased", "accepted", "uncertain", "dead"]),
                name="outbox_message_unfinished",
            ),
            # sweep: what waits although nothing is in its way any more
            models.Index(
                fields=["aggregate", "id"], condition=models.Q(state="ready", blocked=True), name="outbox_message_waiting"
            ),
            # rescue: leases that ran out
            models.Index(fields=["leased_until"], condition=models.Q(state="leased"), name="outbox_message_leased"),
            models.Index(fields=["thread", "ai_message_id"], name="outbox_message_of_batch"),
            models.Index(fields=["subject", "id"], name="outbox_message_of_subject"),
            models.Index(
                fields=["provider_id"], condition=models.Q(provider_id__isnull=False), name="outbox_message_at_provider"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.dedupe_key}"


class Delivery(models.Model):
    """One call to the provider, or one look-up: evidence, insert-only, of stale workers too. Partitioned by month."""

    pk = models.CompositePrimaryKey("id", "started_at")
    id = models.BigIntegerField()
    started_at = models.DateTimeField()
    message_id = models.BigIntegerField()
    lease_token = models.UUIDField(null=True)
    step = models.TextField()  # create, confirm, refund, lookup, webhook
    outcome = models.TextField()  # the class of outbox/outcomes.py
    http_status = models.IntegerField(null=True)
    request_id = models.TextField(null=True)
    provider_id = models.TextField(null=True)
    provider_status = models.TextField(null=True)
    replayed = models.BooleanField()
    stale = models.BooleanField()  # the lease was gone when the answer came
    error = models.TextField(null=True)
    duration_ms = models.IntegerField()

    class Meta:
        managed = False
        db_table = "outbox_delivery"

    def __str__(self) -> str:
        return f"{self.step} of message {self.message_id}: {self.outcome}"


class WebhookEvent(models.Model):
    """An event the provider sent, verified, stored once; processed later."""

    event_id = models.TextField(primary_key=True)
    type = models.TextField()
    object_id = models.TextField()
    payload = models.JSONField()
    received_at = models.DateTimeField(db_default=Now())
    processed_at = models.DateTimeField(null=True)
    outcome = models.TextField(null=True)
    attempts = models.IntegerField(default=0, db_default=0)

    class Meta:
        db_table = "outbox_webhook_event"
        indexes = [
            models.Index(
                fields=["received_at"], condition=models.Q(processed_at__isnull=True), name="outbox_webhook_unprocessed"
            ),
            models.Index(fields=["object_id", "type"], name="outbox_webhook_of_object"),
            # scans: was a second object of a message told of?
            models.Index(
                fields=["processed_at"], condition=models.Q(outcome__startswith="another object:"), name="outbox_webhook_another"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.event_id}"


class Destination(models.Model):
    """How a destination is: parked when it refuses us altogether, slowed when it says that we ask too often."""

    name = models.TextField(primary_key=True)
    parked_until = models.DateTimeField(null=True)  # until then nothing is claimed for it; then one message tries
    parked_because = models.TextField(null=True)  # a status and a code, such as 401 or 429
    refusals = models.IntegerField(default=0, db_default=0)  # in a row; what the pause grows with
    rate = models.IntegerField(null=True)  # messages a minute; null: as many as there are
    burst = models.IntegerField(default=1, db_default=1)  # how many may leave at once after a rest
    spent_until = models.DateTimeField(db_default=Now())  # the bucket's one number: when all that has left is paid for

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="outbox_destination_rate_positive", condition=models.Q(rate__isnull=True) | models.Q(rate__gt=0)
            ),
            models.CheckConstraint(
                name="outbox_destination_parked_has_reason",
                condition=models.Q(parked_until__isnull=True) | models.Q(parked_because__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class SendAfter(models.Model):
    """How long a topic's messages wait, so that staff can take them back. Insert-only: the newest row of a topic counts."""

    id = models.BigAutoField(primary_key=True)
    topic = models.TextField()
    seconds = models.IntegerField()
    reason = models.TextField()
    set_by = models.BigIntegerField()
    set_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "outbox_send_after"
        constraints = [
            models.CheckConstraint(name="outbox_send_after_bounded", condition=models.Q(seconds__gte=0, seconds__lte=3600)),
            models.CheckConstraint(name="outbox_send_after_no_notice", condition=~models.Q(topic__startswith="notify.")),
            models.CheckConstraint(name="outbox_send_after_has_reason", condition=~models.Q(reason="")),
        ]
        indexes = [models.Index(fields=["topic", "-id"], name="outbox_send_after_of_topic")]

    def __str__(self) -> str:
        return f"{self.topic}: {self.seconds} s"


class Rate(models.Model):
    """How many messages may leave for a destination. Insert-only: its newest row counts, in place of the setting.

    A trigger writes it into the destination's row, which every claim reads.
    """

    id = models.BigAutoField(primary_key=True)
    destination = models.TextField()
    rate = models.IntegerField(null=True)  # messages a minute; null: as many as there are
    burst = models.IntegerField(default=1, db_default=1)  # how many may leave at once after a rest
    reason = models.TextField()
    set_by = models.BigIntegerField()
    set_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "outbox_rate"
        constraints = [
            models.CheckConstraint(
                name="outbox_rate_bounded",
                condition=models.Q(rate__isnull=True, burst=1)
                | models.Q(rate__isnull=False, rate__gte=1, rate__lte=60_000, burst__gte=1, burst__lte=1_000),
            ),
            models.CheckConstraint(name="outbox_rate_has_reason", condition=~models.Q(reason="")),
        ]
        indexes = [models.Index(fields=["destination", "-id"], name="outbox_rate_of_destination")]

    def __str__(self) -> str:
        return f"{self.destination}: {self.rate or 'any number'} a minute"


class Request(models.Model):
    """What a person asks the outbox worker to do with a message or a destination; pages only record it."""

    class Kind(models.TextChoices):
        CANCEL = "cancel"
        REPLAY = "replay"
        LOOK_UP = "look_up"  # ask the provider now
        ADOPT = "adopt"  # what the provider says becomes the outcome
        RESEND = "resend"  # the same bytes with the same key, while the key lives
        SETTLE_REJECTED = "settle_rejected"  # as if the provider had said no
        COMPENSATE = "compensate"  # the money was put right elsewhere; needs a note
        REFUND = "refund"  # money that was taken though nothing is owed any more goes back
        RESUME = "resume"  # a destination that is parked

    id = models.BigAutoField(primary_key=True)
    message = models.ForeignKey(Message, on_delete=models.PROTECT, null=True, related_name="requests")
    destination = models.ForeignKey(
        Destination, on_delete=models.PROTECT, null=True, db_column="destination", related_name="requests"
    )
    kind = models.TextField(choices=Kind.choices)
    reason = models.TextField()
    requested_by = models.BigIntegerField()
    requested_at = models.DateTimeField(db_default=Now())
    escalation = models.BigIntegerField(null=True)  # the question whose decision it is
    carried_out_at = models.DateTimeField(null=True)
    outcome = models.TextField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["message"], condition=models.Q(carried_out_at__isnull=True), name="outbox_request_one_open"
            ),
            models.UniqueConstraint(
                fields=["destination"], condition=models.Q(carried_out_at__isnull=True), name="outbox_request_one_open_resume"
            ),
            models.CheckConstraint(
                name="outbox_request_kind_known",
                condition=models.Q(
                    kind__in=["cancel", "replay", "look_up", "adopt", "resend", "settle_rejected", "compensate", "refund"],
                    message__isnull=False,
                    destination__isnull=True,
                )
                | models.Q(kind="resume", message__isnull=True, destination__isnull=False),
            ),
            models.CheckConstraint(name="outbox_request_has_reason", condition=~models.Q(reason="")),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.message_id or self.destination_id}"
