"""Conversations and everything that drives them. Conversations belong to the ORM; the rest to psycopg verbs."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Conversation(models.Model):
    """A staff member's talk with the agent about one customer (the subject). Its thread is LangGraph's thread id."""

    id = models.BigAutoField(primary_key=True)
    thread = models.UUIDField(default=uuid.uuid4, unique=True)
    subject = models.BigIntegerField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["subject", "-id"], name="agent_conversation_of_subject")]

    def __str__(self) -> str:
        return f"C-{self.id}"


class Thread(models.Model):
    """What the driver keeps about a thread. One row a conversation; pages read it, the agent login writes it."""

    class State(models.TextChoices):
        IDLE = "idle"
        RUNNING = "running"
        WAITING = "waiting"  # for a person
        STUCK = "stuck"  # the sweeper gave up; *Resume* rings the bell

    thread = models.UUIDField(primary_key=True)
    fence = models.BigIntegerField(default=0, db_default=0)
    lease_owner = models.TextField(null=True)
    leased_until = models.DateTimeField(null=True)
    state = models.TextField(choices=State.choices, default=State.IDLE, db_default=State.IDLE)
    activity = models.TextField(default="", db_default="")  # such as "Writing an answer", for the list of conversations
    graph_version = models.IntegerField(default=1, db_default=1)
    sweeps = models.IntegerField(default=0, db_default=0)  # drives by the sweeper without progress
    next_sweep_at = models.DateTimeField(db_default=Now())
    stop_requested_at = models.DateTimeField(null=True)
    stop_requested_by = models.BigIntegerField(null=True)
    stepped_in_by = models.BigIntegerField(null=True)  # a person answers; the agent is silent until they hand back
    stepped_in_at = models.DateTimeField(null=True)
    progressed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="agent_thread_state_known", condition=models.Q(state__in=["idle", "running", "waiting", "stuck"])
            ),
        ]
        indexes = [
            models.Index(fields=["next_sweep_at"], condition=~models.Q(state="idle"), name="agent_thread_to_sweep"),
        ]

    def __str__(self) -> str:
        return str(self.thread)


class StaffMessage(models.Model):
    """What a staff member typed: a queue until the driver takes it into the thread."""

    class State(models.TextChoices):
        QUEUED = "queued"
        TAKEN = "taken"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    thread = models.UUIDField()
    number = models.BigIntegerField()  # order within the thread, assigned under the conversation's lock
    author = models.BigIntegerField()
    text = models.TextField()
    state = models.TextField(choices=State.choices, default=State.QUEUED, db_default=State.QUEUED)
    sent_at = models.DateTimeField(db_default=Now())
    taken_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["thread", "number"], name="agent_staff_message_order"),
            models.CheckConstraint(
                name="agent_staff_message_state_known", condition=models.Q(state__in=["queued", "taken", "cancelled"])
            ),
            models.CheckConstraint(name="agent_staff_message_not_empty", condition=~models.Q(text="")),
        ]
        indexes = [
            models.Index(fields=["thread", "number"], condition=models.Q(state="queued"), name="agent_staff_message_queue"),
        ]
        db_table = "agent_staff_message"

    def __str__(self) -> str:
        return f"message {self.number} of {self.thread}"


class TranscriptEntry(models.Model):
    """One message of the thread's state, written in the transaction of the checkpoint that first holds it."""

    pk = models.CompositePrimaryKey("thread", "message_id")
    thread = models.UUIDField()
    message_id = models.TextField()
    position = models.IntegerField()
    role = models.TextField()  # human, ai, tool, system
    text = models.TextField()
    tool_calls = models.JSONField()  # of an ai message: [{"index", "id", "tool", "arguments"}]
    tool_call_id = models.TextField(null=True)
    status = models.TextField(null=True)  # of a tool message: success or error
    model = models.TextField(null=True)
    prompt_version = models.TextField(null=True)
    usage = models.JSONField(null=True)
    written_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "agent_transcript_entry"
        indexes = [models.Index(fields=["thread", "position"], name="agent_transcript_order")]

    def __str__(self) -> str:
        return f"{self.role} {self.message_id}"


class Draft(models.Model):
    """The text the agent is writing right now, upserted a few times a second."""

    thread = models.UUIDField(primary_key=True)
    fence = models.BigIntegerField()
    text = models.TextField()
    updated_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"draft of {self.thread}"


class Notice(models.Model):
    """A fact that reached the conversation from outside it: shown at once, told to the model with the next staff message."""

    id = models.BigAutoField(primary_key=True)
    thread = models.UUIDField()
    kind = models.TextField()  # payment_confirmed, payment_refused, ...: an icon and a state on pages
    state = models.TextField()  # the page's data-state: confirmed, failed, uncertain, held, info
    text = models.TextField()
    object = models.TextField()
    author = models.BigIntegerField(null=True)  # of kind person_said: who stepped in and wrote it
    told_in = models.UUIDField(null=True)  # the staff message it travelled with
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["thread", "kind", "object"], name="agent_notice_once")]
        indexes = [models.Index(fields=["thread", "id"], name="agent_notice_of_thread")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.object}"


class Feed(models.Model):
    """The number of a thread's newest event; its row lock orders them."""

    thread = models.UUIDField(primary_key=True)
    seq = models.BigIntegerField()

    def __str__(self) -> str:
        return f"feed of {self.thread}"


class Event(models.Model):
    """A coarse signal for browsers: something of this thread changed. Partitioned by month."""

    pk = models.CompositePrimaryKey("thread", "seq", "created_at")
    thread = models.UUIDField()
    seq = models.BigIntegerField()
    kind = models.TextField()  # feed, status, escalation
    created_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "agent_event"

    def __str__(self) -> str:
        return f"{self.kind} {self.seq} of {self.thread}"


class Window(models.Model):
    """What was spent in a scope on a day, upserted as the last statement before COMMIT. Holds no customer data."""

    pk = models.CompositePrimaryKey("scope", "day", "currency")
    scope = models.TextField()  # customer:7, staff:3, conversation:<uuid>
    day = models.DateField()
    currency = models.TextField()
    amount = models.BigIntegerField()  # minor units

    class Meta:
        constraints = [models.CheckConstraint(name="agent_window_not_negative", condition=models.Q(amount__gte=0))]

    def __str__(self) -> str:
        return f"{self.scope} {self.day} {self.currency}"


class PolicyRequest(models.Model):
    """A change that loosens a rule and waits for a second admin; the newest row of its rule still counts."""

    id = models.BigAutoField(primary_key=True)
    rule = models.TextField()
    tool = models.TextField(default="", db_default="")
    currency = models.TextField(default="", db_default="")
    value = models.BigIntegerField(null=True)
    reason = models.TextField()
    asked_by = models.BigIntegerField()
    asked_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    ended_by = models.BigIntegerField(null=True)
    outcome = models.TextField(null=True)  # confirmed, refused, withdrawn

    class Meta:
        db_table = "agent_policy_request"
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "tool", "currency"],
                condition=models.Q(ended_at__isnull=True),
                name="agent_policy_request_one_open",
            ),
            models.CheckConstraint(
                name="agent_policy_request_outcome_known",
                condition=models.Q(ended_at__isnull=True, outcome__isnull=True, ended_by__isnull=True)
                | models.Q(ended_at__isnull=False, outcome__in=["confirmed", "refused", "withdrawn"], ended_by__isnull=False),
            ),
            models.CheckConstraint(
                name="agent_policy_request_four_eyes",
                condition=models.Q(outcome__isnull=True)
                | (models.Q(outcome="withdrawn") & models.Q(ended_by=models.F("asked_by")))
                | (models.Q(outcome__in=["confirmed", "refused"]) & ~models.Q(ended_by=models.F("asked_by"))),
            ),
        ]

    def __str__(self) -> str:
        return f"request {self.id} about {self.rule}"


class Policy(models.Model):
    """One version of one number of a rule, insert-only; the newest row of a rule, tool and currency counts.

    `previous` is what counted before; what loosens a rule carries a second admin's name, or the database refuses it.
    """

    id = models.BigAutoField(primary_key=True)  # the version
    rule = models.TextField()
    tool = models.TextField(default="", db_default="")  # empty: every tool
    currency = models.TextField(default="", db_default="")  # empty: every currency
    value = models.BigIntegerField(null=True)  # minor units, hours, uses, or 1/0 for a switch; null: the rule is off
    previous = models.BigIntegerField(null=True)
    reason = models.TextField()
    set_by = models.BigIntegerField()
    confirmed_by = models.BigIntegerField(null=True)
    request = models.ForeignKey(PolicyRequest, on_delete=models.PROTECT, null=True, related_name="+")
    set_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="agent_policy_rule_known",
                condition=models.Q(
                    rule__in=[
                        "kill_switch",
                        "per_call",
                        "second_reviewer",
                        "customer_day",
                        "staff_day",
                        "conversation",
                        "same_effect",
                        "first_use",
                    ]
                ),
            ),
            models.CheckConstraint(
                name="agent_policy_value_not_negative", condition=models.Q(value__isnull=True) | models.Q(value__gte=0)
            ),
            models.CheckConstraint(
                name="agent_policy_confirmed_on_request",
                condition=models.Q(confirmed_by__isnull=True, request__isnull=True)
                | models.Q(confirmed_by__isnull=False, request__isnull=False),
            ),
            models.UniqueConstraint(fields=["request"], name="agent_policy_once_a_request"),
        ]
        indexes = [models.Index(fields=["rule", "tool", "currency", "-id"], name="agent_policy_newest")]

    def __str__(self) -> str:
        return f"{self.rule} v{self.id}"
