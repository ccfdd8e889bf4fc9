"""What became of each order: what the provider's money log says moved, beside what our books say, and who is asked about it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from billing import money
from sandbox.simulation.orders import Order

Movement = Mapping[str, Any]
Row = Mapping[str, Any]

# The invoice, its payments, the refund, the newest message about it, and whether a person is asked about any message of it.
CHARGES = """
SELECT i.id AS number, i.status, m.state, m.last_error, m.ever_unknown,
    coalesce((SELECT jsonb_agg(jsonb_build_object('amount', p.amount_minor, 'intent', p.provider_payment_id))
              FROM public.billing_payment p WHERE p.customer_id = i.customer_id AND p.invoice_id = i.id), '[]') AS payments,
    EXISTS (SELECT FROM public.escalations_escalation e WHERE e.object = 'message:' || m.id
            AND e.kind <> 'rejected_payment' AND e.state IN ('open', 'claimed')) AS asked
FROM public.billing_invoice i LEFT JOIN LATERAL (
    SELECT * FROM public.outbox_message m WHERE m.aggregate = 'invoice:' || i.id ORDER BY m.id DESC LIMIT 1) m ON true
"""
REFUNDS = """
SELECT r.id AS number, r.status, m.state, m.last_error, m.ever_unknown, '[]'::jsonb AS payments,
    EXISTS (SELECT FROM public.escalations_escalation e WHERE e.object = 'message:' || m.id
            AND e.kind <> 'rejected_payment' AND e.state IN ('open', 'claimed')) AS asked
FROM public.billing_refund r LEFT JOIN LATERAL (
    SELECT * FROM public.outbox_message m WHERE m.topic = 'payment.refund' AND m.payload ->> 'refund_id' = r.id::text
    ORDER BY m.id DESC LIMIT 1) m ON true
"""
# A call whose outcome nobody knows, and the next one of its message with no look-up in between that allows it.
BLIND = """
SELECT 'message ' || sent.message_id || ': ' || sent.step || ' again after ' || coalesce(sent.error_before, 'no answer') || '.'
FROM (SELECT d.*, lag(d.id) OVER following AS id_before, lag(d.outcome) OVER following AS outcome_before,
             lag(d.error) OVER following AS error_before
      FROM public.outbox_delivery d JOIN public.outbox_message m ON m.id = d.message_id
      WHERE m.topic LIKE 'payment.%' AND d.step NOT IN ('lookup', 'webhook') AND NOT d.stale
      WINDOW following AS (PARTITION BY d.message_id ORDER BY d.id)) AS sent
WHERE sent.outcome_before = 'uncertain' AND NOT EXISTS (
    SELECT FROM public.outbox_delivery look WHERE look.message_id = sent.message_id AND look.step = 'lookup'
    AND look.outcome IN ('absent', 'unsent') AND look.id > sent.id_before AND look.id < sent.id)
ORDER BY sent.id
"""
# What the status of an invoice or of a refund says about the money: it moved, it did not, or nobody knows yet.
MOVED = {"paid": True, "confirmed": True}
NOT_MOVED = {"charge_failed", "refused", "withdrawn", "reversed", "draft"}


@dataclass(kw_only=True)
class Verdicts:
    """All orders: how many are done, refused or with a person, by kind; and what is wrong, a sentence each."""

    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: {"charge": Counter(), "refund": Counter()})
    waiting: Counter[str] = field(default_factory=Counter)  # for a person: why
    waiting_moved: int = 0  # of those: the money of which has moved, as the person will find
    adopted: int = 0  # orders that got no answer at some time and are settled all the same
    double: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)  # sent again without a look first: only luck, or another net, caught it


def judge(conn: Connection[Any], *, orders: Sequence[Order], movements: Iterable[Movement]) -> Verdicts:
    """Return what became of the orders; `movements` is the provider's whole money log, `conn` sees every row."""
    found, moved = Verdicts(), _by_order(movements)
    books = {"charge": _books(conn, CHARGES), "refund": _books(conn, REFUNDS)}
    for order in orders:
        group = moved.pop((order.kind, str(order.number)), [])
        _judge(found, order, books[order.kind].get(order.number), group)
    for (kind, number), group in moved.items():
        found.double.append(f"{kind} {number}: {len(group)} movements that nobody asked for.")
    found.blind = [row[0] for row in conn.execute(BLIND).fetchall()]
    return found


def _books(conn: Connection[Any], query: Any) -> dict[int, Row]:
    with conn.cursor(row_factory=dict_row) as cursor:
        return {row["number"]: row for row in cursor.execute(query)}


def _by_order(movements: Iterable[Movement]) -> dict[tuple[str, str], list[Movement]]:
    """Return the movements of each order, which the objects at the provider carry in their metadata."""
    groups: dict[tuple[str, str], list[Movement]] = defaultdict(list)
    for movement in movements:
        kind, name = ("charge", "invoice") if movement["kind"] == "charge" else ("refund", "refund")
        groups[kind, str(movement["metadata"].get(name))].append(movement)
    return groups


def _judge(found: Verdicts, order: Order, row: Row | None, group: list[Movement]) -> None:
    named = f"{order.kind} {order.number}"
    outgoing = [movement for movement in group if movement["kind"] == order.kind]
    if len(outgoing) > 1:
        found.double.append(f"{named}: moved {len(outgoing)} times, {', '.join(str(one['object']) for one in outgoing)}.")
    if row is None or row["state"] is None:
        found.lost.append(f"{named}: nothing is left of it.")
    elif row["asked"]:
        found.outcomes[order.kind]["waiting"] += 1
        found.waiting[_why(row)] += 1
        found.waiting_moved += sum(movement["amount"] for movement in group) != 0
    elif row["status"] not in MOVED and row["status"] not in NOT_MOVED:
        found.lost.append(f"{named}: it is {row['status']}, its message {row['state']}, and no person is asked.")
    elif difference := _difference(order, row, group):
        found.wrong.append(f"{named}: {difference}.")
    else:
        found.outcomes[order.kind]["done" if row["status"] in MOVED else str(row["status"])] += 1
        found.adopted += bool(row["ever_unknown"])


def _why(row: Row) -> str:
    """Return why a person is asked: what the message says, or that the provider took back what the books hold for done."""
    return str(row["last_error"] or "unknown") if row["state"] == "dead" else f"{row['state']} here, taken back by the provider"


def _difference(order: Order, row: Row, group: list[Movement]) -> str:
    """Return how settled books differ from what the provider did, or nothing."""
    amount, currency = money.to_provider(order.amount_minor, order.currency)
    expected = (amount if order.kind == "charge" else -amount) if row["status"] in MOVED else 0
    net = sum(movement["amount"] for movement in group)
    if net != expected or any(movement["currency"] != currency for movement in group):
        return f"the books say {row['status']}, but {net} moved instead of {expected} {order.currency}"
    paid = [(payment["amount"], payment["intent"]) for payment in row["payments"]]
    booked = [(order.amount_minor, movement["payment_intent"]) for movement in group] if order.kind == "charge" else []
    return "" if paid == booked else f"the payments in the books are {paid}, not {booked}"
