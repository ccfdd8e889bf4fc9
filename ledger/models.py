"""Rows of evidence: insert-only, written by the psycopg verbs beside this file, read by pages."""

from django.db import models
from django.db.models.functions import Now


class Attempt(models.Model):
    """One try at a batch, written before it starts; an attempt without an outcome is open."""

    id = models.UUIDField(primary_key=True)  # UUIDv7, made by the worker: a crash cannot hand it out twice
    thread = models.UUIDField()
    ai_message_id = models.TextField()
    generation = models.IntegerField()
    subject = models.BigIntegerField()
    on_behalf_of = models.BigIntegerField()
    performed_by = models.BigIntegerField(null=True)  # a person who took the batch over; null: the agent
    fence = models.BigIntegerField()
    # [{"index", "id", "tool", "arguments"}], as they are to run; "dropped": true in one that a person took out
    calls = models.JSONField()
    model = models.TextField()
    prompt_version = models.TextField()
    opened_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["thread", "opened_at"], name="ledger_attempt_of_thread"),
            models.Index(fields=["-opened_at"], name="ledger_attempt_newest"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.id}"


class AttemptOutcome(models.Model):
    """How an attempt ended. Self-contained: a crash may lose the attempt's own row, never this one."""

    class Outcome(models.TextChoices):
        COMMITTED = "committed"
        ROLLED_BACK = "rolled_back"  # a call failed; the model was told
        REFUSED = "refused"  # invalid: nothing ran; the model was told
        HELD = "held"  # waits for a person
        REJECTED = "rejected"  # a person said no; the model was told
        DRIFTED = "drifted"  # what would happen is not what was approved; nothing was told, a person decides again
        INFRASTRUCTURE = "infrastructure"  # the database or the network; nothing was told
        LOST_LEASE = "lost_lease"  # another worker owns the thread
        BUG = "bug"  # nothing that is expected; nothing was told

    attempt_id = models.UUIDField(primary_key=True)  # no foreign key: see the class
    thread = models.UUIDField()
    ai_message_id = models.TextField()
    generation = models.IntegerField()
    outcome = models.TextField(choices=Outcome.choices)
    calls = models.JSONField(null=True)  # as in Attempt; null when committed (the executions have them)
    failed_call = models.IntegerField(null=True)
    failed_statement = models.TextField(null=True)  # SQL text without values
    statement_number = models.IntegerField(null=True)  # 1-based within the failed call
    sqlstate = models.TextField(null=True)
    constraint_name = models.TextField(null=True)
    table_name = models.TextField(null=True)
    detail = models.TextField(null=True)  # driver or exception text: reviewers and admins only
    problems = models.JSONField(null=True)  # validation problems or gate verdicts
    undone = models.JSONField(null=True)  # [{"call_index", "table_name", "operation", "before", "after"}]
    told = models.JSONField(null=True)  # [{"call_index", "status", "text"}]: what the model read
    partial = models.BooleanField(default=False, db_default=False)  # committed without the calls that `told` says failed
    duration_ms = models.IntegerField(null=True)
    closed_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "ledger_attempt_outcome"
        constraints = [
            models.CheckConstraint(
                name="ledger_attempt_outcome_known",
                condition=models.Q(
                    outcome__in=[
                        "committed",
                        "rolled_back",
                        "refused",
                        "held",
                        "rejected",
                        "drifted",
                        "infrastructure",
                        "lost_lease",
                        "bug",
                    ]
                ),
            ),
            models.CheckConstraint(
                name="ledger_attempt_outcome_partial",
                condition=models.Q(partial=False) | models.Q(outcome="committed", told__isnull=False),
            ),
            models.CheckConstraint(
                name="ledger_attempt_outcome_self_contained",
                condition=models.Q(outcome="committed") | models.Q(calls__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["thread", "ai_message_id"], name="ledger_outcome_of_batch"),
            models.Index(fields=["-closed_at"], name="ledger_outcome_newest"),
            # what a filter asks for is rare among what went well, and costs nothing there
            models.Index(
                fields=["outcome", "-closed_at"], condition=~models.Q(outcome="committed"), name="ledger_outcome_troubled"
            ),
        ]

    def __str__(self) -> str:
        return f"outcome of {self.attempt_id}: {self.outcome}"


class Execution(models.Model):
    """The idempotency ledger: a row exists if and only if the call's effects do."""

    pk = models.CompositePrimaryKey("thread", "ai_message_id", "call_index")
    thread = models.UUIDField()
    ai_message_id = models.TextField()
    call_index = models.IntegerField()
    generation = models.IntegerField()
    tool_call_id = models.TextField()
    tool = models.TextField()
    fingerprint = models.BinaryField()  # SHA-256 of tool and validated arguments
    arguments = models.JSONField()
    result = models.JSONField()
    attempt_id = models.UUIDField()
    subject = models.BigIntegerField()
    on_behalf_of = models.BigIntegerField()
    performed_by = models.BigIntegerField(null=True)  # a person who took the batch over; null: the agent
    model = models.TextField()
    prompt_version = models.TextField()
    committed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(name="ledger_execution_call_index", condition=models.Q(call_index__gte=0, call_index__lt=20)),
        ]
        indexes = [
            models.Index(fields=["-committed_at"], name="ledger_execution_newest"),
            models.Index(fields=["subject", "tool", "committed_at"], name="ledger_execution_same_effect"),
            models.Index(fields=["tool", "committed_at"], name="ledger_execution_of_tool"),  # first uses, back-tests
            models.Index(fields=["attempt_id"], name="ledger_execution_of_attempt"),
            models.Index(fields=["tool_call_id"], name="ledger_execution_of_call"),
            models.Index(fields=["ai_message_id"], name="ledger_execution_of_message"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.thread}/{self.ai_message_id}/{self.call_index}"


class BatchAbort(models.Model):
    """A batch that the model was told FAILED; it can never commit under this generation."""

    pk = models.CompositePrimaryKey("thread", "ai_message_id", "generation")
    thread = models.UUIDField()
    ai_message_id = models.TextField()
    generation = models.IntegerField()
    attempt_id = models.UUIDField()
    told = models.JSONField()  # the answers, replayed by a re-run
    recorded_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "ledger_batch_abort"

    def __str__(self) -> str:
        return f"abort of {self.thread}/{self.ai_message_id}/{self.generation}"


class RowChange(models.Model):
    """One changed row of a watched table, written by a trigger. Partitioned by month of `changed_at`."""

    pk = models.CompositePrimaryKey("id", "changed_at")
    id = models.BigIntegerField()
    changed_at = models.DateTimeField()
    attempt_id = models.UUIDField(null=True)
    call_index = models.IntegerField(null=True)
    message_id = models.BigIntegerField(null=True)  # the outbox message whose settling changed the row
    subject = models.BigIntegerField(null=True)
    login = models.TextField()
    table_name = models.TextField()
    operation = models.TextField()  # INSERT, UPDATE, DELETE
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        managed = False
        db_table = "ledger_row_change"

    def __str__(self) -> str:
        return f"{self.operation} {self.table_name} #{self.id}"
