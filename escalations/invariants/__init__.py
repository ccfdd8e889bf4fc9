"""What must be true of questions to people, of their decisions, and of what ran because of one."""

from escalations.invariants import approvals, disagreements, questions, running

INVARIANTS = (*questions.INVARIANTS, *approvals.INVARIANTS, *running.INVARIANTS, *disagreements.INVARIANTS)
