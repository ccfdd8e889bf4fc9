"""What must be true of conversations: they belong together, tell the truth about what ran, and never stand still unnoticed."""

from agent.invariants import memory, threads

INVARIANTS = (*threads.INVARIANTS, *memory.INVARIANTS)
