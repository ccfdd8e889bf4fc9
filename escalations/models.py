"""Escalations, the revisions of what is proposed, previews, signatures and the one decision."""

from django.db import models
from django.db.models.functions import Now

from escalations.reconciling.models import Scan

__all__ = ["Act", "Decision", "Escalation", "Presence", "Preview", "Revision", "Scan", "Signature"]


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
    amount_minor = models.BigIntegerField(null=True)  # the largest amount at stake; null: no money is
    currency = models.TextField(default="", db_default="")
    follows = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")  # whose approval did not run
    opened_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)  # when the system decides for want of a person; null: never
    claimed_by = models.BigIntegerField(null=True)
    claimed_until = models.DateTimeField(null=True)
    snoozed_until = models.DateTimeField(null=True)
    snoozed_by = models.BigIntegerField(null=True)
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
            # The inbox: what waits, the most urgent first; and what was decided, the newest first.
            # All that the inbox counts by is in it, so that thousands that wait are counted without being read.
            models.Index(
                fields=["due_at", "id"],
                include=["state", "claimed_by", "claimed_until", "snoozed_until", "opened_at"],
                condition=models.Q(state__in=["open", "claimed"]),
                name="escalations_urgent",
            ),
            models.Index(fields=["state", "id"], name="escalations_of_state"),
            # Searched together with the words of it, which are a column that only the database knows (0002_rows).
            models.Index(fields=["requested_by", "id"], name="escalations_of_requester"),
            models.Index(fields=["thread", "id"], name="escalations_of_thread"),
            models.Index(fields=["subject", "id"], name="escalations_of_subject"),
            models.Index(
                fields=["expires_at"],
                condition=models.Q(state__in=["open", "claimed"], expires_at__isnull=False),
                name="escalations_to_expire",
            ),
        ]

    def __str__(self) -> str:
        return f"E-{self.id} {self.kind}"


class Revision(models.Model):
    """What exactly is proposed; number 0 is the agent's own, every other an edit of a reviewer's."""

    id = models.BigAutoField(primary_key=True)
    escalation = models.ForeignKey(Escalation, on_delete=models.PROTECT, related_name="revisions")
    number = models.IntegerField()
    calls = models.JSONField()  # [{"index", "id", "tool", "arguments"}]; an index of number 0 that is missing was dropped
    calls_hash = models.BinaryField()
    author = models.BigIntegerField(null=True)  # null: the agent
    lowers = models.BooleanField(default=False, db_default=False)  # every change of number 0 lowers an amount or drops a call
    as_person = models.BooleanField(default=False, db_default=False)  # taken over: runs as its author's, not the agent's
    text = models.TextField(default="", db_default="")  # why it was changed
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["escalation", "number"], name="escalations_revision_number"),
            models.CheckConstraint(
                name="escalations_revision_of_someone",
                condition=models.Q(number=0, author__isnull=True, as_person=False) | models.Q(number__gt=0, author__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"revision {self.number} of E-{self.escalation_id}"


class Preview(models.Model):
    """A revision judged by the gate, run for real and rolled back. A page asks for it; the agent's worker fills it in, once."""

    class Outcome(models.TextChoices):
        CLEAN = "clean"
        FAILS = "fails"  # a call would fail: see `failure`
        INVALID = "invalid"  # the calls are not sound: see `failure`
        REFUSED = "refused"  # by the gate
        UNAVAILABLE = "unavailable"  # locks or the database stood in the way; ask again

    id = models.BigAutoField(primary_key=True)
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="previews")
    requested_by = models.BigIntegerField(null=True)  # null: the agent, when it was held
    requested_at = models.DateTimeField(db_default=Now())
    made_at = models.DateTimeField(null=True)
    outcome = models.TextField(choices=Outcome.choices, null=True)
    policy_version = models.TextField(null=True)
    verdicts = models.JSONField(null=True)  # of the gate, and of the cumulative windows
    allowed = models.BooleanField(null=True)  # clean, and nothing holds it
    needs = models.IntegerField(null=True)  # reviewers who have to sign: 1 or 2
    digest = models.BinaryField(null=True)  # of changes and messages, generated columns masked; null unless clean
    changes = models.JSONField(null=True)  # [{"call_index", "table_name", "operation", "before", "after"}]
    messages = models.JSONField(null=True)  # what would leave: [{"call_index", "topic", "aggregate", "payload", "sentence"}]
    results = models.JSONField(null=True)  # {"<call index>": what the tool returned}
    failure = models.JSONField(null=True)  # {"call_index", "sentence", "sqlstate", "constraint", "table", "statement", "detail"}
    duration_ms = models.IntegerField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="escalations_preview_outcome_known",
                condition=models.Q(outcome__isnull=True)
                | models.Q(outcome__in=["clean", "fails", "invalid", "refused", "unavailable"]),
            ),
            models.CheckConstraint(
                name="escalations_preview_whole",
                condition=models.Q(made_at__isnull=True, outcome__isnull=True, allowed__isnull=True, needs__isnull=True)
                | models.Q(
                    made_at__isnull=False,
                    outcome__isnull=False,
                    allowed__isnull=False,
                    needs__in=[1, 2],
                    policy_version__isnull=False,
                    verdicts__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="escalations_preview_clean_digest",
                condition=(models.Q(outcome="clean") & models.Q(digest__isnull=False, changes__isnull=False))
                | models.Q(allowed__isnull=True)
                | models.Q(digest__isnull=True, allowed=False),
            ),
        ]
        indexes = [
            models.Index(fields=["revision", "-id"], name="escalations_preview_newest"),
            models.Index(fields=["id"], condition=models.Q(made_at__isnull=True), name="escalations_preview_unmade"),
        ]

    def __str__(self) -> str:
        return f"preview {self.id} of revision {self.revision_id}"


class Signature(models.Model):
    """A reviewer's name under one revision as one preview showed it.

    Who asked, who edited, whether the edit only lowers and whether the gate allows it are carried in by a trigger, so that
    the database refuses a self-approval whatever the code says. What is not the newest is carried in as null.
    """

    id = models.BigAutoField(primary_key=True)
    escalation = models.ForeignKey(Escalation, on_delete=models.PROTECT, related_name="signatures")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="signatures")
    preview = models.ForeignKey(Preview, on_delete=models.PROTECT, related_name="signatures")
    reviewer = models.BigIntegerField()
    requested_by = models.BigIntegerField(null=True)
    asked = models.BooleanField()  # the agent has read a message of the reviewer's in this conversation
    answered = models.BooleanField()  # the agent proposes it on the reviewer's answer
    editor = models.BigIntegerField(null=True)  # the revision's author
    lowers = models.BooleanField(null=True)  # null: not the newest revision
    allowed = models.BooleanField(null=True)  # null: not the newest preview of it, or not a clean one
    signed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["revision", "preview", "reviewer"], name="escalations_signature_once"),
            models.CheckConstraint(
                name="escalations_signature_four_eyes",
                condition=models.Q(requested_by__isnull=True) | ~models.Q(reviewer=models.F("requested_by")),
            ),
            models.CheckConstraint(name="escalations_signature_not_asked", condition=models.Q(asked=False)),
            models.CheckConstraint(name="escalations_signature_not_answered", condition=models.Q(answered=False)),
            models.CheckConstraint(name="escalations_signature_newest_revision", condition=models.Q(lowers__isnull=False)),
            models.CheckConstraint(name="escalations_signature_newest_preview", condition=models.Q(allowed__isnull=False)),
            models.CheckConstraint(
                name="escalations_signature_own_edit",
                condition=models.Q(editor__isnull=True)
                | ~models.Q(reviewer=models.F("editor"))
                | models.Q(lowers=True, allowed=True),
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
        TAKE_OVER = "take_over"  # a person performs the batch
        WITHDRAW = "withdraw"  # by the side that asked
        # How a disagreement is settled. What they do to a message, the outbox worker does; a thread, the agent's.
        ADOPT = "adopt"  # what the provider says
        RESEND = "resend"
        SETTLE_REJECTED = "settle_rejected"  # as if the provider had said no
        COMPENSATE = "compensate"  # it was put right elsewhere
        REFUND = "refund"  # money that was taken though nothing is owed
        REPLAY_THREAD = "replay_thread"

    id = models.BigAutoField(primary_key=True)
    escalation = models.OneToOneField(Escalation, on_delete=models.PROTECT, related_name="decision")
    kind = models.TextField(choices=Kind.choices)
    text = models.TextField()  # the reason, or the answer to the model
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, null=True, related_name="+")
    preview = models.ForeignKey(Preview, on_delete=models.PROTECT, null=True, related_name="+")  # what was shown and is to happen
    needs = models.IntegerField(null=True)  # signatures, carried from the preview by a trigger
    signed = models.IntegerField(null=True)  # people who signed the same, counted by the trigger; 0 unless one of them decides
    waived = models.JSONField()  # the verdicts that were shown and are waived for this generation
    decided_by = models.BigIntegerField(null=True)
    requested_by = models.BigIntegerField(null=True)
    decided_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="escalations_decision_kind_known",
                condition=models.Q(
                    kind__in=[
                        *("approve", "reject", "answer", "retry", "close", "expire", "settle", "take_over", "withdraw"),
                        *("adopt", "resend", "settle_rejected", "compensate", "refund", "replay_thread"),
                    ]
                ),
            ),
            models.CheckConstraint(
                name="escalations_decision_signed",
                condition=~models.Q(kind__in=["approve", "take_over"])
                | models.Q(revision__isnull=False, preview__isnull=False, needs__isnull=False, signed__gte=models.F("needs")),
            ),
            models.CheckConstraint(
                name="escalations_decision_compensation_signed",
                condition=~models.Q(kind="compensate") | models.Q(needs__isnull=False, signed__gte=models.F("needs")),
            ),
            models.CheckConstraint(
                name="escalations_decision_four_eyes",
                condition=~models.Q(
                    kind__in=[
                        *("approve", "take_over"),
                        *("adopt", "resend", "settle_rejected", "compensate", "refund", "replay_thread"),
                    ]
                )
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


class Act(models.Model):
    """What happened to an escalation besides its decision; insert-only. A null `by` is the system."""

    class Kind(models.TextChoices):
        CLAIMED = "claimed"
        RELEASED = "released"
        TAKEN_FROM = "taken_from"  # the claim was taken from another reviewer
        REASSIGNED = "reassigned"
        SNOOZED = "snoozed"
        WOKEN = "woken"
        EDITED = "edited"
        PREVIEWED = "previewed"
        SIGNED = "signed"
        NOTIFIED = "notified"

    id = models.BigAutoField(primary_key=True)
    escalation = models.ForeignKey(Escalation, on_delete=models.PROTECT, related_name="acts")
    kind = models.TextField(choices=Kind.choices)
    by = models.BigIntegerField(null=True)
    at = models.DateTimeField(db_default=Now())
    detail = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="escalations_act_kind_known",
                condition=models.Q(
                    kind__in=[
                        "claimed",
                        "released",
                        "taken_from",
                        "reassigned",
                        "snoozed",
                        "woken",
                        "edited",
                        "previewed",
                        "signed",
                        "notified",
                    ]
                ),
            ),
        ]
        indexes = [models.Index(fields=["escalation", "id"], name="escalations_acts")]

    def __str__(self) -> str:
        return f"{self.kind} of E-{self.escalation_id}"


class Presence(models.Model):
    """Who has an escalation's page open right now; old rows mean nothing."""

    pk = models.CompositePrimaryKey("escalation", "person")
    escalation = models.ForeignKey(Escalation, on_delete=models.CASCADE, related_name="presences")
    person = models.BigIntegerField()
    editing = models.BooleanField(default=False, db_default=False)
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["seen_at"], name="escalations_presence_seen")]

    def __str__(self) -> str:
        return f"{self.person} looks at E-{self.escalation_id}"
