"""What must be true of customers' money, of what was sent to the provider for it, and of what calls did to it."""

from billing.invariants import books, calls, credit, payments

INVARIANTS = (*credit.INVARIANTS, *books.INVARIANTS, *payments.INVARIANTS, *calls.INVARIANTS)
