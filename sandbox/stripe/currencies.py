"""Stripe's currencies: codes, decimals, the least amount it charges, and amounts that it cannot represent."""

CODES = frozenset(
    """usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp byn bzd cad cdf chf clp cny
    cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl htg huf idr ils inr isk jmd jod jpy
    kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr
    nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd std szl thb tjs tnd top try ttd
    twd tzs uah ugx uyu uzs vnd vuv wst xaf xcd xof xpf yer zar zmw""".split()  # noqa: SIM905 - as a list it would be a page long
)
ZERO_DECIMAL = frozenset("bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split())  # noqa: SIM905
THREE_DECIMAL = frozenset("bhd jod kwd omr tnd".split())  # noqa: SIM905
WHOLE_UNITS = frozenset(("isk", "ugx"))  # no decimals, and yet Stripe wants them times 100
LEAST = {
    "usd": 50, "aed": 200, "aud": 50, "brl": 50, "cad": 50, "chf": 50, "czk": 1500, "dkk": 250, "eur": 50, "gbp": 30,
    "hkd": 400, "huf": 17500, "inr": 50, "jpy": 50, "mxn": 1000, "myr": 200, "nok": 300, "nzd": 50, "pln": 200, "ron": 200,
    "sek": 300, "sgd": 50, "thb": 1000,
}  # fmt: skip
SYMBOLS = {"usd": "$", "eur": "€", "gbp": "£", "jpy": "¥"}


def step(currency: str) -> int:
    """Return what an amount must be a multiple of, in minor units."""
    return 100 if currency in WHOLE_UNITS else 10 if currency in THREE_DECIMAL else 1


def least(currency: str) -> int:
    """Return the smallest charge, in minor units; 1 where Stripe names none."""
    return LEAST.get(currency, 1)


def display(amount: int, currency: str) -> str:
    """Return an amount in minor units as people write it: $10.00, 12.500 KWD."""
    decimals = 0 if currency in ZERO_DECIMAL else 3 if currency in THREE_DECIMAL else 2
    number = f"{amount / 10**decimals:.{decimals}f}"
    symbol = SYMBOLS.get(currency)
    return f"{symbol}{number}" if symbol else f"{number} {currency.upper()}"
