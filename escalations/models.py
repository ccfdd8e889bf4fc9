"""Escalations, the revisions of what is proposed, signatures and the one decision."""

from django.db import models
from django.db.models.functions import Now


class Escalation(models.Model):
    """A question put to a person. `object` names what it is about: at most one is open for it."""

    class Kind(models.TextChoices):
        ROLLBACKS = "rollbacks"
        APPROVAL = "approval"
        ASKED = "asked"
        INFRASTRUCTURE = "infrastructure"
        BUDGET = "budget"
        UNKNOWN_OUTCOME = "unknown_outcome"
        REJECTED_PAYMENT = "rejected_payment"
        DIRTY_STATE = "dirty_state"

    class State(models.TextChoices):
        OPEN = "open"
        CLAIMED = "claimed"
        DECIDED = "decided"  # the thread has not gone on yet
        RESUMED = "resumed"  # the thread took the decision and runs
        DONE = "done"
        EXPIRED = "expired"

    id = models.BigAutoField(primary_key=True)
    kind = models.TextField(choices=Kind.choices)
    state = models.TextField(choices=State.choices, default=State.OPEN, db_default=State.OPEN)
    object = models.TextField()  # such as thread:<uuid> or message:17
    thread = models.UUIDField(null=True)
    interrupt_id = models.TextField(null=True, unique=True)  # null: no thread waits for it
    subject = models.BigIntegerField(null=True)
    requested_by = models.BigIntegerField(null=True)  # the staff member the agent worked for
    ai_message_id = models.TextField(null=True)
    generation = models.IntegerField(default=0, db_default=0)
    payload = models.JSONField()  # {"reason", "question"?, "calls", "verdicts"?, "attempt_id"?, "message_id"?}
    opened_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(null=True)
    claimed_by = models.BigIntegerField(null=True)
    claimed_until = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)
    resumed_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["object"], condition=models.Q(state__in=["open", "claimed"]), name="escalations_escalation_one_open"
            ),
            models.UniqueConstraint(fields=["id", "requested_by"], name="escalations_escalation_requester"),
            models.CheckConstraint(
                name="escalations_escalation_kind_known",
                condition=models.Q(
                    kind__in=[
                        "rollbacks",
                        "approval",
                        "asked",
                        "infrastructure",
                        "budget",
                        "unknown_outcome",
                        "rejected_payment",
                        "dirty_state",
                    ]
                ),
            ),
            models.CheckConstraint(
                name="escalations_escalation_state_known",
                condition=models.Q(state__in=["open", "claimed", "decided", "resumed", "done", "expired"]),
            ),
            models.CheckConstraint(
                name="escalations_escalation_claimed_by_someone",
                condition=~models.Q(state="claimed") | models.Q(claimed_by__isnull=False, claimed_until__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["state", "due_at", "id"], name="escalations_inbox"),
            models.Index(fields=["thread", "id"], name="escalations_of_thread"),
            models.Index(fields=["subject", "id"], name="escalations_of_subject"),
        ]

    def __str__(self) -> str:
        return f"E-{self.id} {self.kind}"


class Revision(models.Model):
    """What exactly is proposed; number 0 is the agent's own."""

    id = models.BigAutoField(primary_key=True)
    escalation = models.ForeignKey(Escalation, on_delete=models.PROTECT, related_name="revisions")
    number = models.IntegerField()
    calls = models.JSONField()
    calls_hash = models.BinaryField()
    policy_version = models.TextField()
    verdicts = models.JSONField()
    author = models.BigIntegerField(null=True)  # null: the agent
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["escalation", "number"], name="escalations_revision_number")]

    def __str__(self) -> str:
        return f"revision {self.number} of E-{self.escalation_id}"


class Signature(models.Model):
    """A reviewer's name under one revision. The requester is carried in, so that the database refuses a self-approval."""

    id = models.BigAutoField(primary_key=True)
    escalation = models.ForeignKey(Escalation, on_delete=models.PROTECT, related_name="signatures")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="signatures")
    reviewer = models.BigIntegerField()
    requested_by = models.BigIntegerField(null=True)
    signed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["escalation", "revision", "reviewer"], name="escalations_signature_once"),
            models.CheckConstraint(
                name="escalations_signature_four_eyes",
                condition=models.Q(requested_by__isnull=True) | ~models.Q(reviewer=models.F("requested_by")),
            ),
        ]

    def __str__(self) -> str:
        return f"signature of {self.reviewer} under E-{self.escalation_id}"


class Decision(models.Model):
    """The one decision; insert-only. A null `decided_by` is the system's own policy."""

    class Kind(models.TextChoices):
        APPROVE = "approve"
        REJECT = "reject"
        ANSWER = "answer"
        RETRY = "retry"
        CLOSE = "close"
        EXPIRE = "expire"
        SETTLE = "settle"

    id = models.BigAutoField(primary_key=True)
    escalation = models.OneToOneField(Escalation, on_delete=models.PROTECT, related_name="decision")
    kind = models.TextField(choices=Kind.choices)
    text = models.TextField()  # the reason, or the answer to the model
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, null=True, related_name="+")
    waived = models.JSONField()  # the verdicts that were shown and are waived for this generation
    decided_by = models.BigIntegerField(null=True)
    requested_by = models.BigIntegerField(null=True)
    decided_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="escalations_decision_kind_known",
                condition=models.Q(kind__in=["approve", "reject", "answer", "retry", "close", "expire", "settle"]),
            ),
            models.CheckConstraint(
                name="escalations_decision_four_eyes",
                condition=~models.Q(kind="approve")
                | models.Q(requested_by__isnull=True)
                | ~models.Q(decided_by=models.F("requested_by")),
            ),
            models.CheckConstraint(
                name="escalations_decision_by_someone",
                condition=models.Q(kind__in=["expire", "settle"], decided_by__isnull=True)
                | (~models.Q(kind__in=["expire", "settle"]) & models.Q(decided_by__isnull=False)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} for E-{self.escalation_id}"
