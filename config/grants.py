"""What the catalogue says each login may do, as the table of docs/grants.md."""

from collections import defaultdict
from typing import Any

from psycopg import Connection

from config.logins import NAMES, role

LOGINS = tuple(name for name in NAMES if name != "owner")
HEAD = """# What each database login may do

Read from the catalogue of a migrated database by `manage.py document_grants`; a test compares it. The source is
`config/logins.sql`. The owner login owns every table, migrates, and is used by no worker and no page. "S I U D" are
SELECT, INSERT, UPDATE and DELETE on the whole table; columns are named where a right covers only some.
Row-level security narrows this further: see the policies at the end of `config/logins.sql`.

"""

TABLES = """
SELECT c.relname, p.privilege, has_table_privilege(%(role)s, c.oid, p.privilege)
FROM pg_class c CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) AS p (privilege)
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
ORDER BY c.relname
"""
COLUMNS = """
SELECT c.relname, p.privilege, string_agg(a.attname, ', ' ORDER BY a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) AS p (privilege)
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
  AND NOT has_table_privilege(%(role)s, c.oid, p.privilege) AND has_column_privilege(%(role)s, c.oid, a.attnum, p.privilege)
GROUP BY c.relname, p.privilege
"""


def document(conn: Connection[Any]) -> str:
    """Return docs/grants.md for the database that `conn` is in."""
    rights = {login: _rights(conn, login) for login in LOGINS}
    tables = sorted({table for found in rights.values() for table in found})
    rows = [f"| `{table}` | " + " | ".join(rights[login].get(table, "–") for login in LOGINS) + " |" for table in tables]
    head = "| table | " + " | ".join(LOGINS) + " |"
    return HEAD + "\n".join([head, "|---" * (len(LOGINS) + 1) + "|", *rows]) + "\n"


def _rights(conn: Connection[Any], login: str) -> dict[str, str]:
    values = {"role": role(login)}
    whole: dict[str, list[str]] = defaultdict(list)
    for table, privilege, granted in conn.execute(TABLES, values).fetchall():
        if granted:
            whole[table].append("TRUNCATE" if privilege == "TRUNCATE" else privilege[0])
    parts: dict[str, list[str]] = defaultdict(list)
    for table, privilege, columns in conn.execute(COLUMNS, values).fetchall():
        parts[table].append(f"{privilege[0]} ({columns})")
    found = set(whole) | set(parts)
    order = "SIUD"
    return {
        table: "; ".join(filter(None, [" ".join(sorted(whole[table], key=order.find)), *sorted(parts[table])])) for table in found
    }
