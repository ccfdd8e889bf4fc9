"""Scans as rows; the models of escalations name it, too."""

from django.db import models
from django.db.models.functions import Now


class Scan(models.Model):
    """One look for disagreements: between ledger, books, conversations, outbox and provider. A page or beat asks for it."""

    id = models.BigAutoField(primary_key=True)
    asked_at = models.DateTimeField(db_default=Now())
    asked_by = models.BigIntegerField(null=True)  # null: beat, or what followed a decision
    escalation = models.BigIntegerField(null=True)  # only what this is about: its exit was carried out
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    counts = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))  # what was compared
    found = models.IntegerField(default=0, db_default=0)
    opened = models.IntegerField(default=0, db_default=0)
    cleared = models.IntegerField(default=0, db_default=0)
    error = models.TextField(default="", db_default="")  # what could not be compared

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["escalation"], condition=models.Q(finished_at__isnull=True), name="escalations_scan_one_of_a_case"
            ),
            models.CheckConstraint(
                name="escalations_scan_began",
                condition=models.Q(finished_at__isnull=True) | models.Q(started_at__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=models.Q(finished_at__isnull=True), name="escalations_scan_unfinished"),
            models.Index(fields=["-id"], condition=models.Q(escalation__isnull=True), name="escalations_scan_whole"),
        ]

    def __str__(self) -> str:
        return f"scan {self.id}"
