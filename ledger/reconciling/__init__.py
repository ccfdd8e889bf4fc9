"""Disagreements that people can settle: each app declares its checks, a scan (escalations) asks them all."""

from ledger.reconciling import attempts
from ledger.reconciling.declaring import Check, Disagreement, Fact, Get, Looking, Row, every, find

CHECKS = attempts.CHECKS

__all__ = ["CHECKS", "Check", "Disagreement", "Fact", "Get", "Looking", "Row", "every", "find"]
