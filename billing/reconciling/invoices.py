"""Invoices that stand otherwise than the message of their last charge, or than their payments."""

from collections.abc import Iterator

from billing import money
from billing.reconciling import following
from billing.reconciling.following import NONE
from billing.repairs import Charge
from ledger.reconciling import Check, Disagreement, Fact, Looking, Row

# An invoice changes in the transaction in which its message is queued or settled. `should` is what it would be then. Money
# that came when nothing was owed pays nothing; an earlier charge may succeed after the last one was refused, and is what an
# invoice is about that its money does not pay.
INVOICES = """
SELECT * FROM (
    SELECT i.id, i.customer_id, i.currency, i.status, i.amount_due_minor AS due_minor, i.charge_attempt,
        p.number AS payments, p.total AS paid_minor, p.payment,
        m.id AS message, m.state, m.thread, m.ai_message_id, m.provider_id IS NOT NULL AS named, m.id = last.id AS last,
        (m.payload ->> 'amount_minor')::bigint AS charged_minor, own.stray, e.on_behalf_of,
        CASE WHEN m.id IS NULL THEN CASE WHEN i.charge_attempt = 0 THEN 'draft' ELSE 'none' END
             WHEN m.state = 'succeeded' OR earlier.id IS NOT NULL AND m.state IN ('rejected', 'cancelled') THEN 'paid'
             WHEN m.state = 'rejected' THEN 'charge_failed' WHEN m.state = 'cancelled' THEN 'draft'
             ELSE 'charge_queued' END AS should
    FROM public.billing_invoice i
    CROSS JOIN LATERAL (
        SELECT count(*) AS number, coalesce(sum(amount_minor), 0)::bigint AS total, max(id) AS payment,
            max(provider_payment_id) AS provider_id
        FROM public.billing_payment WHERE invoice_id = i.id AND customer_id = i.customer_id AND NOT stray) p
    LEFT JOIN public.outbox_message last ON last.dedupe_key = 'charge:invoice:' || i.id || ':' || i.charge_attempt
    LEFT JOIN public.outbox_message earlier
        ON earlier.provider_id = p.provider_id AND earlier.state = 'succeeded' AND earlier.id < last.id
    LEFT JOIN public.outbox_message m ON m.id = CASE WHEN i.status = 'paid' THEN last.id ELSE coalesce(earlier.id, last.id) END
    LEFT JOIN public.billing_payment own ON own.provider_payment_id = m.provider_id
    LEFT JOIN public.ledger_execution e
        ON e.thread = m.thread AND e.ai_message_id = m.ai_message_id AND e.call_index = m.call_index
    WHERE (%(after)s::bigint IS NULL OR i.id > %(after)s) AND i.id <= %(upto)s
) AS i
WHERE NOT (i.state IS NOT DISTINCT FROM 'succeeded' AND coalesce(i.stray, false)) AND CASE i.status
        -- void after it came to nothing, and paid with nothing due: both without a charge
        WHEN 'void' THEN i.should NOT IN ('draft', 'charge_failed')
        WHEN 'paid' THEN i.should <> 'paid' AND (i.due_minor > 0 OR i.should NOT IN ('draft', 'charge_failed'))
        ELSE i.status <> i.should END
   OR (i.status = 'paid' AND i.paid_minor <> i.due_minor) OR (i.status <> 'paid' AND i.payments > 0)
   OR (i.state = 'succeeded' AND i.stray IS NULL)
ORDER BY i.id
"""
NOT_OWED = "It is not what was owed: adopted, the money is entered as owed to nobody, and can be sent back."


def invoices(looking: Looking) -> Iterator[Disagreement]:
    """Yield the invoices that do not stand as the message of their last charge does, or as their payments do."""
    for row in looking.chunks(INVOICES, table="billing_invoice"):
        due, paid = (money.format(row[name], row["currency"]) for name in ("due_minor", "paid_minor"))
        ours, theirs = row["status"].replace("_", " "), row["should"].replace("_", " ")
        books = _books(row)
        exits, why_not = following.exits(books)
        yield Disagreement(
            object=f"invoice:{row['id']}",
            about=f"Invoice {row['id']}",
            sentence=_sentence(row, paid=paid, due=due),
            detail=NOT_OWED if _is_stray(books, exits) else f"{_would_be(row)} {why_not}".strip(),
            facts=(
                Fact(name="Status", ours=ours, theirs=theirs, differs=row["status"] != row["should"]),
                Fact(name="Charge", ours=_nth(row), theirs=following.state(row), differs=row["should"] == NONE),
                Fact(name="Paid", ours=due if row["status"] == "paid" else "nothing", theirs=paid, differs=_unpaid(row)),
            ),
            exits=exits,
            amount_minor=row["due_minor"],
            **following.about(row),
        )


def _is_stray(books: Charge | None, exits: tuple[str, ...]) -> bool:
    return books is not None and "adopt" in exits and books.state == "succeeded" and not books.pays()


def _books(row: Row) -> Charge | None:
    if row["message"] is None:
        return None
    same = ("currency", "status", "due_minor", "state", "named", "last", "charged_minor", "stray", "payment")
    return Charge(invoice=row["id"], **{name: row[name] for name in same})


def _sentence(row: Row, *, paid: str, due: str) -> str:
    status = row["status"].replace("_", " ")
    if row["status"] != row["should"]:
        told = "its charge succeeded" if row["state"] == "succeeded" else f"its charge is {following.state(row)}"
        return f"Invoice {row['id']} is {status} here, but {told}."
    if row["state"] == "succeeded" and row["stray"] is None:
        return f"The charge of invoice {row['id']} succeeded, but the books have no payment of it."
    return f"Invoice {row['id']} is {status} here, but its payments are of {paid}, and {due} is due."


def _would_be(row: Row) -> str:
    if row["should"] in (NONE, row["status"]):
        return ""
    return f"With its charge as it stands it would be {row['should'].replace('_', ' ')}."


def _unpaid(row: Row) -> bool:
    return bool(row["paid_minor"] != (row["due_minor"] if row["status"] == "paid" else 0))


def _nth(row: Row) -> str:
    return f"number {row['charge_attempt']}" if row["charge_attempt"] else NONE


CHECKS = (
    Check(
        name="billing.invoices",
        holds="Invoices stand as their charges do.",
        mark=following.DIFFERS,
        ours="The invoice says",
        theirs="Its charge says",
        look=invoices,
        counts={"invoices": "SELECT count(*) FROM public.billing_invoice"},
    ),
)
