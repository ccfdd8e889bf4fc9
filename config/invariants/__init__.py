"""What must be true of the database as a whole, whatever is in it."""

from config.invariants import secrets, shapes

INVARIANTS = (*shapes.INVARIANTS, *secrets.INVARIANTS)
