"""The balance: what the money log adds up to."""

from sandbox.stripe import money
from sandbox.stripe.exchange import Json
from sandbox.stripe.store import Transaction


def get(tx: Transaction, params: Json) -> Json:
    """Return this account's money, all of it available at once."""
    available = [{"amount": amount, "currency": currency} for currency, amount in sorted(money.balances(tx).items())]
    pending = [{"amount": 0, "currency": line["currency"]} for line in available]
    return {"object": "balance", "available": available, "livemode": False, "pending": pending}
