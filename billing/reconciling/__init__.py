"""What the books disagree about with themselves, and with the messages that speak for them at the provider."""

from billing.reconciling import balances, invoices, payments, refunds

CHECKS = (*balances.CHECKS, *invoices.CHECKS, *payments.CHECKS, *refunds.CHECKS)
