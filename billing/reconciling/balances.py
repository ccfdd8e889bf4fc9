"""What the books disagree about with themselves, and with the messages that speak for them at the provider."""

from collections.abc import Iterator, Mapping
from typing import Any

from billing import money
from ledger.marks import Mark
from ledger.reconciling import Check, Disagreement, Fact, Looking, Row

# One customer's balance is written with its entries, in one transaction: no time has to pass.
BALANCES = """
SELECT a.customer_id, a.currency, a.balance_minor, a.entries, coalesce(e.total, 0) AS total, coalesce(e.number, 0) AS number
FROM public.billing_credit_account a
LEFT JOIN LATERAL (SELECT sum(amount_minor)::bigint AS total, count(*) AS number FROM public.billing_credit_entry
                   WHERE customer_id = a.customer_id) e ON true
WHERE (%(after)s::bigint IS NULL OR a.customer_id > %(after)s) AND a.customer_id <= %(upto)s
  AND ROW(a.balance_minor, a.entries) IS DISTINCT FROM ROW(coalesce(e.total, 0), coalesce(e.number, 0))
ORDER BY a.customer_id
"""
# An invoice changes in the transaction in which its message is queued or settled. `should` is what it would be then. Money
# that came when nothing was owed pays nothing; an earlier charge may succeed after the last one was refused.
INVOICES = """
SELECT * FROM (
    SELECT i.id, i.customer_id, i.currency, i.status, i.amount_due_minor, i.charge_attempt, m.id AS message, m.state, m.stray,
        m.thread, m.ai_message_id, e.on_behalf_of, p.number AS payments, p.total AS paid,
        CASE WHEN m.id IS NULL THEN CASE WHEN i.charge_attempt = 0 THEN 'draft' ELSE 'none' END
             WHEN m.earlier OR m.state = 'succeeded' THEN 'paid' WHEN m.state = 'rejected' THEN 'charge_failed'
             WHEN m.state = 'cancelled' THEN 'draft' ELSE 'charge_queued' END AS should
    FROM public.billing_invoice i
    LEFT JOIN LATERAL (
        SELECT m.id, m.state, m.thread, m.ai_message_id, m.call_index, m.state = 'succeeded' AND EXISTS (
                SELECT FROM public.billing_payment p WHERE p.provider_payment_id = m.provider_id AND p.stray) AS stray,
            m.state IN ('rejected', 'cancelled') AND i.charge_attempt > 1 AND i.status = 'paid' AND EXISTS (
                SELECT FROM public.billing_payment p JOIN public.outbox_message e ON e.provider_id = p.provider_payment_id
                WHERE p.invoice_id = i.id AND p.customer_id = i.customer_id AND NOT p.stray AND e.id < m.id) AS earlier
        FROM public.outbox_message m WHERE m.dedupe_key = 'charge:invoice:' || i.id || ':' || i.charge_attempt) m ON true
    LEFT JOIN public.ledger_execution e
        ON e.thread = m.thread AND e.ai_message_id = m.ai_message_id AND e.call_index = m.call_index
    CROSS JOIN LATERAL (SELECT count(*) AS number, coalesce(sum(amount_minor), 0)::bigint AS total FROM public.billing_payment
                        WHERE invoice_id = i.id AND customer_id = i.customer_id AND NOT stray) p
    WHERE (%(after)s::bigint IS NULL OR i.id > %(after)s) AND i.id <= %(upto)s
) AS i
WHERE NOT coalesce(i.stray, false) AND CASE i.status
        -- void after it came to nothing, and paid with nothing due: both without a charge
        WHEN 'void' THEN i.should NOT IN ('draft', 'charge_failed')
        WHEN 'paid' THEN i.should <> 'paid' AND (i.amount_due_minor > 0 OR i.should NOT IN ('draft', 'charge_failed'))
        ELSE i.status <> i.should END
   OR (i.status = 'paid' AND i.paid <> i.amount_due_minor) OR (i.status <> 'paid' AND i.payments > 0)
ORDER BY i.id
"""
REFUNDS = """
SELECT r.id, r.customer_id, r.currency, r.amount_minor, r.status, m.id AS message, m.state, m.provider_id, m.thread,
    m.ai_message_id, e.on_behalf_of
FROM public.billing_refund r
LEFT JOIN public.outbox_message m ON m.dedupe_key = 'refund:' || r.id || ':1'
LEFT JOIN public.ledger_execution e
    ON e.thread = m.thread AND e.ai_message_id = m.ai_message_id AND e.call_index = m.call_index
WHERE (%(after)s::bigint IS NULL OR r.id > %(after)s) AND r.id <= %(upto)s
  AND NOT (r.status = CASE m.state WHEN 'succeeded' THEN 'confirmed' WHEN 'rejected' THEN 'refused'
                                   WHEN 'cancelled' THEN 'withdrawn' ELSE CASE WHEN m.id IS NULL THEN '' ELSE 'queued' END END
           OR (r.status = 'reversed' AND m.state = 'succeeded'))
ORDER BY r.id
"""
NONE = "none"


def balances(looking: Looking) -> Iterator[Disagreement]:
    """Yield the credit balances that their entries do not add up to."""
    for row in looking.chunks(BALANCES, table="billing_credit_account", key="customer_id"):
        ours, theirs = (money.format(row[name], row["currency"]) for name in ("balance_minor", "total"))
        yield Disagreement(
            object=f"balance:{row['customer_id']}",
            about=f"Credit {ours}",
            sentence=f"The credit balance is {ours}, but its entries add up to {theirs}.",
            facts=(
                Fact(name="Balance", ours=ours, theirs=theirs, differs=ours != theirs),
                _counted("Entries", row["entries"], row["number"]),
            ),
            exits=("compensate",),
            subject=row["customer_id"],
            amount_minor=abs(row["balance_minor"] - row["total"]),
            currency=row["currency"],
        )


def invoices(looking: Looking) -> Iterator[Disagreement]:
    """Yield the invoices that do not stand as the message of their last charge does, or as their payments do."""
    for row in looking.chunks(INVOICES, table="billing_invoice"):
        due, paid = (money.format(row[name], row["currency"]) for name in ("amount_due_minor", "paid"))
        ours, theirs = _words(row["status"]), _words(row["should"])
        yield Disagreement(
            object=f"invoice:{row['id']}",
            about=f"Invoice {row['id']}",
            sentence=f"Invoice {row['id']} is {ours} here, but {_told(row, thing='charge')}.",
            detail=f"With its charge as it stands it would be {theirs}." if row["should"] != NONE else "",
            facts=(
                Fact(name="Status", ours=ours, theirs=theirs, differs=row["status"] != row["should"]),
                Fact(name="Charge", ours=_nth(row["charge_attempt"]), theirs=_state(row), differs=row["should"] == NONE),
                Fact(name="Paid", ours=due if row["status"] == "paid" else "nothing", theirs=paid, differs=_unpaid(row)),
            ),
            amount_minor=row["amount_due_minor"],
            **_about(row),
        )  # fmt: skip


def refunds(looking: Looking) -> Iterator[Disagreement]:
    """Yield the refunds that do not stand as their message does."""
    for row in looking.chunks(REFUNDS, table="billing_refund"):
        amount = money.format(row["amount_minor"], row["currency"])
        yield Disagreement(
            object=f"refund:{row['id']}",
            about=f"Refund {amount}",
            sentence=f"Refund {row['id']} of {amount} is {row['status']} here, but {_told(row, thing='request')}.",
            facts=(
                Fact(name="Amount", ours=amount, theirs=amount if row["message"] else NONE),
                Fact(name="Status", ours=row["status"], theirs=_state(row), differs=True),
            ),
            amount_minor=row["amount_minor"],
            **_about(row),
        )


def _about(row: Row) -> Mapping[str, Any]:
    return {
        "exits": ("adopt", "compensate") if row["message"] else ("compensate",),
        "message": row["message"],
        "subject": row["customer_id"],
        "thread": row["thread"],
        "ai_message_id": row["ai_message_id"],
        "requested_by": row["on_behalf_of"],
        "currency": row["currency"],
    }


def _counted(name: str, ours: int, theirs: int) -> Fact:
    return Fact(name=name, ours=str(ours), theirs=str(theirs), differs=ours != theirs)


def _told(row: Row, *, thing: str) -> str:
    return f"its {thing} {row['state']}" if row["state"] in ("succeeded",) else f"its {thing} is {_state(row)}"


def _state(row: Row) -> str:
    return str(row["state"]) if row["message"] else NONE


def _unpaid(row: Row) -> bool:
    return bool(row["paid"] != (row["amount_due_minor"] if row["status"] == "paid" else 0))


def _nth(attempt: int) -> str:
    return f"number {attempt}" if attempt else NONE


def _words(status: str) -> str:
    return status.replace("_", " ")


DIFFERS = Mark(state="uncertain", icon="git-compare-arrows", word="Status differs")
CHECKS = (
    Check(
        name="billing.balances",
        holds="Balances match their entries.",
        mark=Mark(state="uncertain", icon="scale", word="Balance differs"),
        ours="The balance says",
        theirs="Its entries say",
        look=balances,
        counts={"accounts": "SELECT count(*) FROM public.billing_credit_account"},
    ),
    Check(
        name="billing.invoices",
        holds="Invoices stand as their charges do.",
        mark=DIFFERS,
        ours="The invoice says",
        theirs="Its charge says",
        look=invoices,
        counts={"invoices": "SELECT count(*) FROM public.billing_invoice"},
    ),
    Check(
        name="billing.refunds",
        holds="Refunds stand as their requests do.",
        mark=DIFFERS,
        ours="The refund says",
        theirs="Its request says",
        look=refunds,
    ),
)
