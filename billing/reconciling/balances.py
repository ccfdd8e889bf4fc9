"""Credit balances that differ from what their entries add up to."""

from collections.abc import Iterator

from billing import money
from ledger.marks import Mark
from ledger.reconciling import Check, Disagreement, Fact, Looking

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


def _counted(name: str, ours: int, theirs: int) -> Fact:
    return Fact(name=name, ours=str(ours), theirs=str(theirs), differs=ours != theirs)


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
)
