"""What must not lie in any text that is kept: card numbers, keys, passwords."""

from collections.abc import Iterator

from django.apps import apps
from django.db import models

from config.invariants.shapes import OURS
from ledger.invariants import Invariant

# Digits as on a card, together or in its groups, whose check digit is right; keys and passwords by how they begin.
CARD = r"\m(?:[2-6][0-9]{12,18}|[2-6][0-9]{3}[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{1,7}|3[47][0-9]{2}[ -][0-9]{6}[ -][0-9]{5})\M"
KEY = (
    r"\m(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{8}|\mwhsec_[0-9A-Za-z]{16}|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|postgres(?:ql)?://[^:@/\s]+:[^@/\s]+@"
)
# A text is read once. What is in none of the ways in which they begin is passed over quickly; a week is time to find it.
TEXTS = """
SELECT '{table}' AS "table", '{column}' AS "column", row,
    CASE WHEN text ~ %(key)s THEN 'secret' ELSE 'card number' END AS looks_like
FROM (SELECT ({key})::text AS row, {column}::text AS text FROM public.{table} WHERE %(quiet)s OR {recent} OFFSET 0) AS one
WHERE text ~ '[0-9]{{13}}|[0-9]{{4}}[ -][0-9]{{4}}[ -][0-9]{{4}}|[0-9]{{4}}[ -][0-9]{{6}}[ -]|[sr]k_|whsec_|BEGIN|postgres'
  AND (text ~ %(key)s OR EXISTS (
    SELECT FROM regexp_matches(text, %(card)s, 'g') AS found (digits)
    CROSS JOIN LATERAL regexp_replace(digits[1], '[^0-9]', '', 'g') AS bare
    WHERE (SELECT sum(CASE WHEN place %% 2 = 1 THEN digit ELSE digit * 2 / 10 + digit * 2 %% 10 END) %% 10 = 0
           FROM generate_series(1, length(bare)) AS place
           CROSS JOIN LATERAL (SELECT substr(reverse(bare), place, 1)::integer AS digit) AS each_digit)))
"""
# Where a model says when a row was written.
WRITTEN = (
    "created_at", "opened_at", "closed_at", "committed_at", "recorded_at", "sent_at", "written_at", "received_at", "requested_at",
    "set_at", "decided_at", "started_at", "updated_at",
)  # fmt: skip


def texts() -> str:
    """Return the query over every column in which something that was written by people, models or providers can be."""
    return "UNION ALL".join(TEXTS.format(**column) for column in _columns())


def _columns() -> Iterator[dict[str, str]]:
    """Yield each text. What changes of rows hold is in the rows; events say nothing."""
    for app in OURS:
        for model in apps.get_app_config(app).get_models():
            table, key = model._meta.db_table, model._meta.pk
            keys = [field.column for field in getattr(key, "fields", None) or [key]]
            columns = [field.column for field in model._meta.local_fields]
            written = next((name for name in WRITTEN if name in columns), None)
            for field in model._meta.local_fields:
                texty = isinstance(field, models.TextField | models.JSONField) and field.column not in keys
                if texty and table not in ("ledger_row_change", "agent_event"):
                    yield {
                        "table": table,
                        "column": field.column,
                        "key": f"ROW({', '.join(keys)})" if len(keys) > 1 else keys[0],
                        "recent": f"{written} > now() - interval '7 days'" if written else "true",
                    }


INVARIANTS = (
    Invariant(
        name="config.no_secret_in_text",
        guarantee=3,
        says="No text that was written in the last seven days looks like a card number, a key or a password.",
        query=texts,
        values=lambda: {"card": CARD, "key": KEY},
    ),
)
