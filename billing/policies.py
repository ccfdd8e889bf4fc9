"""The rules that a call of billing must pass, in this order, and what they need to know. Caps need none: the database judges."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection, Cursor

from agent import rules
from agent.gate import Facts, GatedCall, Rule, Verdict, each

# The card that a payment was made with is in what was sent to the provider for it.
KNOWN = """
SELECT jsonb_build_object('currency', c.currency, 'card', c.card_last4, 'invoices', (
    SELECT coalesce(jsonb_object_agg(i.billing_period, i.id), '{}') FROM public.billing_invoice i
    WHERE i.customer_id = c.id AND i.status <> 'void'
), 'cards', (
    SELECT coalesce(jsonb_object_agg(p.invoice_id, m.payload->>'card_last4'), '{}') FROM public.billing_payment p
    JOIN public.billing_invoice i ON i.id = p.invoice_id AND i.customer_id = p.customer_id
    JOIN public.outbox_message m ON m.subject = c.id AND m.topic = 'payment.charge' AND m.provider_id = p.provider_payment_id
        AND m.aggregate = 'invoice:' || p.invoice_id
    WHERE p.customer_id = c.id AND NOT p.stray AND (p.invoice_id = ANY(%(refunded)s::bigint[])
        OR i.billing_period = ANY(%(periods)s::date[]) AND i.status <> 'void')
)) FROM public.billing_customer c WHERE c.id = %(subject)s
"""


class Knowledge:
    """What billing's rules know of a customer: their currency, their card, and the invoices and cards that calls name."""

    always = (
        ("Another currency", "A call in another currency than the customer’s is refused, and the agent is told which one it is."),
        ("Another card", "A refund that would go to another card than the one on file waits for a reviewer."),
    )

    def ask(self, conn: Connection[Any], *, subject: int, calls: Sequence[GatedCall]) -> Cursor[Any]:
        """Send the statement."""
        refunds = [call.arguments for call in calls if call.tool.name == "QueueRefund"]
        named = {getattr(call.arguments, "billing_period", None) for call in calls}
        asked = {
            "subject": subject,
            "periods": sorted(period for period in named if period),
            "refunded": [refund.invoice_id for refund in refunds if refund.invoice_id],
        }
        return conn.execute(KNOWN, asked)

    def named(self, arguments: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments with the id of an invoice that they name by its month; the month where there is none yet."""
        period, named = arguments.get("billing_period"), arguments.get("invoice_id")
        return arguments if named or not period else {**arguments, "invoice_id": known.get("invoices", {}).get(period, period)}

    def currencies(self, conn: Connection[Any]) -> list[str]:
        """Return the currencies that customers have, for a login that sees all of them."""
        return [code for (code,) in conn.execute("SELECT DISTINCT currency FROM public.billing_customer ORDER BY 1")]


KNOWLEDGE = Knowledge()


def _currency(call: GatedCall, facts: Facts) -> Verdict | None:
    """Refuse an amount in another currency than the customer's."""
    amount, currency = call.tool.amount(call.arguments), facts.domain.get("currency")
    if amount is None or currency is None or amount.currency == currency:
        return None
    customer = call.arguments.customer_id
    return Verdict(
        call_index=call.index,
        action="refuse",
        rule="currency",
        version=0,
        currency=amount.currency,
        sentence=f"Customer {customer} is billed in {currency}, so {amount.currency} cannot be used. Nothing is converted.",
    )


def _destination(call: GatedCall, facts: Facts) -> Verdict | None:
    """Hold a refund of a payment that was made with another card than the one on file: the provider sends it to that one."""
    if call.tool.name != "QueueRefund":
        return None
    asked = call.arguments
    invoice = asked.invoice_id or facts.domain.get("invoices", {}).get(str(asked.billing_period))
    paid, card = facts.domain.get("cards", {}).get(str(invoice)), facts.domain.get("card")
    if not paid or paid == card:
        return None
    now = f"the card on file now is {card}" if card else "no card is on file now"
    sentence = f"The invoice was paid with card {paid}, and the money would go back there; {now}. Does the customer still use it?"
    return Verdict(call_index=call.index, action="hold", rule="destination", version=0, sentence=sentence)


currency, destination = each(_currency), each(_destination)
RULES: tuple[Rule, ...] = (
    rules.kill_switch,
    currency,
    rules.rejected_before,
    rules.per_call,
    rules.second_reviewer,
    rules.same_effect,
    destination,
    rules.first_use,
    rules.cumulative,
)
