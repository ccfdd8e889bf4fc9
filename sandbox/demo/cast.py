"""Who is in the demo: customers, their cards at the Stripe sandbox, their balances and invoices."""

from dataclasses import dataclass, field
from datetime import date

GOOD_CARD = "pm_card_visa"


@dataclass(frozen=True, kw_only=True)
class DemoInvoice:
    """One invoice: for the month so many months before this one, in minor units, paid by card or still a draft.

    `at_provider`: its payment paid an invoice at the provider too, as in a company that bills there.
    """

    months_ago: int
    amount_minor: int
    description: str
    paid: bool = True
    at_provider: bool = False

    def billing_period(self, today: date) -> date:
        """Return the first day of its month."""
        years, month = divmod(today.year * 12 + today.month - 1 - self.months_ago, 12)
        return date(years, month + 1, 1)


@dataclass(frozen=True, kw_only=True)
class DemoCustomer:
    """One customer. `card` is the sandbox's name of the card on file now; `paid_with` paid what is paid, None: no card."""

    name: str
    email: str
    currency: str
    credit_minor: int = 0
    card: str | None = GOOD_CARD
    paid_with: str = GOOD_CARD
    terms_days: int = 14
    invoices: tuple[DemoInvoice, ...] = field(default=())


def paid(months_ago: int, amount_minor: int, description: str, *, at_provider: bool = False) -> DemoInvoice:
    """Return an invoice that was paid by card."""
    return DemoInvoice(months_ago=months_ago, amount_minor=amount_minor, description=description, at_provider=at_provider)


def draft(months_ago: int, amount_minor: int, description: str) -> DemoInvoice:
    """Return an invoice that nobody has charged yet."""
    return DemoInvoice(months_ago=months_ago, amount_minor=amount_minor, description=description, paid=False)


CAST = (
    DemoCustomer(
        name="Sample Cycles BV",
        email="accounts@cycles.test",
        currency="EUR",
        credit_minor=12_000,
        invoices=(
            paid(3, 48_000, "40 seats"),
            paid(2, 48_000, "40 seats"),
            paid(1, 64_000, "40 seats and the route planner"),
        ),
    ),
    DemoCustomer(
        name="Example Bakery Ltd",
        email="office@bakery.test",
        currency="GBP",
        invoices=(
            paid(2, 98_000, "Ovens dashboard, yearly", at_provider=True),
            paid(1, 6_400, "Add-on"),
            draft(0, 12_500, "Two new branches"),
        ),
    ),
    DemoCustomer(
        name="Fictional Freight Oy",
        email="finance@freight.test",
        currency="EUR",
        credit_minor=2_000,
        card="pm_card_visa_chargeDeclinedInsufficientFunds",
        terms_days=30,
        invoices=(paid(2, 31_500, "12 trucks"), draft(1, 7_500, "3 more trucks")),
    ),
    DemoCustomer(
        name="Specimen Labs Inc",
        email="ap@specimen.test",
        currency="USD",
        credit_minor=25_000,
        card="pm_card_sandboxProcessing",
        invoices=(paid(2, 124_000, "Lab plan"), draft(1, 124_000, "Lab plan")),
    ),
    DemoCustomer(
        name="Placeholder Press GmbH",
        email="buero@placeholder.test",
        currency="EUR",
        invoices=(paid(2, 21_000, "Print run"), draft(1, 21_000, "Print run, wrong month")),
    ),
    DemoCustomer(
        name="Dummy Dynamics SARL",
        email="compta@dummy.test",
        currency="EUR",
        credit_minor=30_000,
        card=None,
        invoices=(draft(1, 45_000, "Simulation hours"),),
    ),
    DemoCustomer(
        name="Mock Meridian ApS",
        email="billing@meridian.test",
        currency="EUR",
        card="pm_card_refundFail",
        paid_with="pm_card_refundFail",
        invoices=(paid(1, 54_000, "Map tiles"),),
    ),
    DemoCustomer(
        name="Trial & Error LLC",
        email="hello@trial.test",
        currency="USD",
        card="pm_card_authenticationRequired",
        invoices=(paid(1, 1_800, "Add-on"), draft(0, 9_900, "Starter plan")),
    ),
    DemoCustomer(
        name="Stand-in Studios KK",
        email="keiri@stand-in.test",
        currency="JPY",
        credit_minor=30_000,
        card="pm_card_pendingRefund",
        paid_with="pm_card_pendingRefund",
        invoices=(paid(2, 88_000, "Render farm"), paid(1, 88_000, "Render farm")),
    ),
)
