"""What must be true of the database itself: who may do what, what guards its tables, and what shape they have."""

from collections.abc import Mapping
from typing import Any

from django.apps import apps

from ledger.invariants import Invariant

OURS = ("ledger", "outbox", "escalations", "agent", "billing")
OF_CUSTOMER = (
    "billing_customer", "billing_credit_account", "billing_invoice", "billing_payment", "billing_refund", "billing_credit_memo",
    "billing_credit_entry", "billing_refund_reversal", "ledger_row_change", "outbox_message",
)  # fmt: skip
POLICIES = {
    **{name: {"owner_all", "read_all", "agent_subject", "outbox_subject"} for name in OF_CUSTOMER},
    "outbox_message": {"owner_all", "read_all", "agent_subject", "outbox_all", "notify"},
    "escalations_decision": {"owner_all", "read_all", "web_people", "agent_system", "outbox_system"},
    "escalations_revision": {"owner_all", "read_all", "web_edits", "agent_proposes"},
    "agent_staff_message": {"owner_all", "read_all", "web_writes", "web_changes", "agent_takes"},
}
INSERT_ONLY = (
    "ledger_attempt", "ledger_attempt_outcome", "ledger_execution", "ledger_batch_abort", "ledger_row_change", "outbox_delivery",
    "escalations_revision", "escalations_signature", "escalations_decision", "escalations_act", "agent_policy",
    "billing_credit_entry", "billing_refund_reversal",
)  # fmt: skip
WATCHED = OF_CUSTOMER[:8]
TRIGGERS = (
    *((table, "append_only") for table in INSERT_ONLY),
    *((table, "record_change") for table in WATCHED),
    *((table, "balance_is_sum") for table in ("billing_credit_account", "billing_credit_entry")),
    *((table, "carry") for table in ("escalations_revision", "escalations_signature", "escalations_decision")),
    ("escalations_preview", "made_once"),
    ("outbox_delivery", "goes_with_message"),
    ("agent_policy", "previous"),
    ("agent_policy_request", "ended_once"),
)
# Those that models cannot say, from the migrations.
MORE = (
    "billing_credit_account_currency", "billing_invoice_customer_currency", "billing_payment_customer_currency",
    "billing_payment_invoice", "billing_refund_customer_currency", "billing_refund_payment",
    "billing_refund_reversal_customer_currency", "billing_refund_reversal_refund",
    "billing_credit_memo_customer_currency", "billing_credit_memo_invoice", "billing_credit_entry_customer_currency",
    "billing_credit_entry_invoice", "billing_credit_entry_credit_memo", "escalations_signature_requester",
    "escalations_decision_requester", "agent_policy_loosening_needs_two",
    "ledger_row_change_operation_known", "agent_event_kind_known",
)  # fmt: skip

ROW_SECURITY = """
SELECT wanted.name AS "table", c.relrowsecurity AS enabled, c.relforcerowsecurity AS forced, p.names AS policies
FROM unnest(%(tables)s::text[], %(policies)s::text[]) AS wanted (name, policies)
LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = 'public'::regnamespace AND c.relname = wanted.name
LEFT JOIN (SELECT tablename, string_agg(policyname, ' ' ORDER BY policyname) AS names FROM pg_catalog.pg_policies
           WHERE schemaname = 'public' GROUP BY tablename) p ON p.tablename = wanted.name
WHERE c.relrowsecurity IS NOT TRUE OR c.relforcerowsecurity IS NOT TRUE OR p.names IS DISTINCT FROM wanted.policies
"""
# What each policy says: a customer's rows by the subject of the transaction, people's decisions by people.
POLICY = """
SELECT tablename AS "table", policyname AS policy, cmd, roles::text AS roles, qual, with_check FROM pg_catalog.pg_policies
WHERE schemaname = 'public' AND CASE policyname
    WHEN 'agent_subject' THEN roles::text <> '{backstop_agent}' OR coalesce(qual, '') NOT LIKE '%%backstop.subject%%'
        OR coalesce(with_check, '') NOT LIKE '%%backstop.subject%%'
    WHEN 'outbox_subject' THEN roles::text <> '{backstop_outbox}' OR coalesce(qual, '') NOT LIKE '%%backstop.subject%%'
        OR coalesce(with_check, '') NOT LIKE '%%backstop.subject%%'
    WHEN 'read_all' THEN cmd <> 'SELECT'
    WHEN 'owner_all' THEN roles::text <> '{backstop_owner}'
    WHEN 'agent_system' THEN roles::text <> '{backstop_agent}' OR coalesce(with_check, '') NOT LIKE '%%decided_by IS NULL%%'
    WHEN 'web_people' THEN roles::text <> '{backstop_web}' OR coalesce(with_check, '') NOT LIKE '%%decided_by IS NOT NULL%%'
    WHEN 'web_edits' THEN roles::text <> '{backstop_web}' OR coalesce(with_check, '') NOT LIKE '%%author IS NOT NULL%%'
    WHEN 'agent_proposes' THEN roles::text <> '{backstop_agent}' OR coalesce(with_check, '') NOT LIKE '%%author IS NULL%%'
    WHEN 'notify' THEN roles::text <> '{backstop_agent,backstop_web}' OR coalesce(with_check, '') NOT LIKE '%%notify.%%'
    ELSE false END
"""
LOGINS = """
SELECT r.rolname AS login, r.rolsuper AS superuser, r.rolbypassrls AS passes_row_security, r.rolcreaterole AS makes_roles,
    EXISTS (SELECT FROM pg_catalog.pg_auth_members m WHERE m.member = r.oid) AS acts_as_others
FROM pg_catalog.pg_roles r
WHERE r.rolname IN ('backstop_owner', 'backstop_web', 'backstop_agent', 'backstop_outbox', 'backstop_keeper')
  AND (r.rolsuper OR r.rolbypassrls OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolinherit
       OR EXISTS (SELECT FROM pg_catalog.pg_auth_members m WHERE m.member = r.oid))
"""
OWNER = """
SELECT c.relname AS "table", pg_catalog.pg_get_userbyid(c.relowner) AS owner FROM pg_catalog.pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
  AND pg_catalog.pg_get_userbyid(c.relowner) <> 'backstop_owner'
"""
RIGHTS = """
SELECT c.relname AS "table", r.rolname AS login, right_to.verb FROM pg_catalog.pg_class c
LEFT JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid
CROSS JOIN unnest(ARRAY['backstop_web', 'backstop_agent', 'backstop_outbox', 'backstop_keeper']) AS login (name)
JOIN pg_catalog.pg_roles r ON r.rolname = login.name
CROSS JOIN unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS right_to (verb)
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
  AND (c.relname = ANY(%(tables)s) OR i.inhparent::regclass::text = ANY(%(tables)s))
  AND (pg_catalog.has_table_privilege(r.oid, c.oid, right_to.verb)
       OR right_to.verb = 'UPDATE' AND pg_catalog.has_any_column_privilege(r.oid, c.oid, 'UPDATE'))
"""
GUARDED = """
SELECT wanted.name AS "table", wanted.guard, t.tgenabled::text AS enabled
FROM (SELECT * FROM unnest(%(tables)s::text[], %(triggers)s::text[]) AS of_whole (name, guard)
      UNION ALL
      SELECT part.relname, of_whole.guard FROM unnest(%(tables)s::text[], %(triggers)s::text[]) AS of_whole (name, guard)
      JOIN pg_catalog.pg_inherits i ON i.inhparent = to_regclass('public.' || of_whole.name)
      JOIN pg_catalog.pg_class part ON part.oid = i.inhrelid AND part.relkind = 'r') AS wanted
LEFT JOIN pg_catalog.pg_trigger t ON t.tgrelid = to_regclass('public.' || wanted.name) AND t.tgname = wanted.guard
WHERE coalesce(t.tgenabled::text, 'D') NOT IN ('O', 'A')
"""
FUNCTIONS = """
SELECT p.oid::regprocedure::text AS function, p.prosecdef AS as_its_owner, p.proconfig AS settings FROM pg_catalog.pg_proc p
WHERE p.pronamespace = 'public'::regnamespace AND p.prokind IN ('f', 'p')
  AND (NOT coalesce(p.proconfig, '{}') && ARRAY['search_path=pg_catalog, pg_temp']
       OR pg_catalog.has_function_privilege('public', p.oid, 'EXECUTE')
       OR pg_catalog.pg_get_userbyid(p.proowner) <> 'backstop_owner')
"""
CONSTRAINTS = """
SELECT wanted.name AS "constraint", c.convalidated AS validated, i.indisvalid AS valid
FROM unnest(%(names)s::text[]) AS wanted (name)
LEFT JOIN pg_catalog.pg_constraint c ON c.connamespace = 'public'::regnamespace AND c.conname = wanted.name
LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = to_regclass('public.' || wanted.name) AND i.indisunique
WHERE NOT (coalesce(c.convalidated, false) OR coalesce(i.indisvalid, false)) OR i.indisvalid IS FALSE
"""
MONEY = """
SELECT c.relname AS "table", a.attname AS "column", pg_catalog.format_type(a.atttypid, a.atttypmod) AS type
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
  AND c.relname ~ %(ours)s
  AND (a.atttypid = ANY(ARRAY['real', 'double precision', 'numeric', 'money', 'timestamp', 'time']::regtype[])
       OR (a.attname ~ '(_minor|^amount)$' AND a.atttypid <> 'bigint'::regtype))
"""
# Rows that no month's partition took: nobody made it in time.
DEFAULTS = """
SELECT 'ledger_row_change' AS "table", count(*) AS rows FROM public.ledger_row_change_default HAVING count(*) > 0
UNION ALL SELECT 'outbox_delivery', count(*) FROM public.outbox_delivery_default HAVING count(*) > 0
UNION ALL SELECT 'agent_event', count(*) FROM public.agent_event_default HAVING count(*) > 0
"""
AHEAD = """
SELECT c.relname AS "table", wanted.month FROM pg_catalog.pg_partitioned_table p
JOIN pg_catalog.pg_class c ON c.oid = p.partrelid AND c.relnamespace = 'public'::regnamespace
CROSS JOIN unnest(ARRAY[timezone('UTC', now()), timezone('UTC', now()) + interval '1 month']) AS month (at)
CROSS JOIN LATERAL (SELECT to_char(month.at, '"_y"YYYY"m"MM') AS month) AS wanted
WHERE to_regclass('public.' || c.relname || wanted.month) IS NULL
"""


def row_security() -> Mapping[str, Any]:
    """Return the tables and the policies that each has, in the order in which the catalogue joins them."""
    return {"tables": list(POLICIES), "policies": [" ".join(sorted(names)) for names in POLICIES.values()]}


def constraints() -> Mapping[str, Any]:
    """Return the names of every constraint that a model or a migration of ours declares."""
    named = [item.name for app in OURS for model in apps.get_app_config(app).get_models() for item in model._meta.constraints]
    return {"names": [*named, *MORE]}


INVARIANTS = (
    Invariant(
        name="config.row_security_is_forced",
        guarantee=7,
        says="Row-level security is on, for the owner too, with exactly the policies of config/logins.sql.",
        query=ROW_SECURITY,
        values=row_security,
    ),
    Invariant(
        name="config.policies_say_what_they_must",
        guarantee=7,
        says="Each policy is for its login and compares what it must: the customer, or who decides.",
        query=POLICY,
    ),
    Invariant(
        name="config.logins_have_no_powers",
        guarantee=7,
        says="No login of ours is a superuser, passes row-level security, makes roles or databases, or acts as another.",
        query=LOGINS,
    ),
    Invariant(
        name="config.owner_owns_everything",
        guarantee=7,
        says="Every table, view and sequence belongs to the owner login.",
        query=OWNER,
    ),
    Invariant(
        name="config.evidence_cannot_be_changed",
        guarantee=10,
        says="No login may update, delete or truncate what is written once, in any month's part of it.",
        query=RIGHTS,
        values=lambda: {"tables": list(INSERT_ONLY)},
    ),
    Invariant(
        name="config.guards_are_on",
        guarantee=10,
        says="The triggers that refuse changes of evidence, record changes of the books and check balances are there and on.",
        query=GUARDED,
        values=lambda: dict(zip(("tables", "triggers"), map(list, zip(*TRIGGERS, strict=True)), strict=True)),
    ),
    Invariant(
        name="config.functions_are_closed",
        guarantee=7,
        says="Every function of ours has a fixed search path, belongs to the owner, and is not for everybody.",
        query=FUNCTIONS,
    ),
    Invariant(
        name="config.constraints_hold",
        guarantee=1,
        says="Every constraint that the code relies on is there, and all rows were checked against it.",
        query=CONSTRAINTS,
        values=constraints,
    ),
    Invariant(
        name="config.columns_are_exact",
        guarantee=1,
        says="Money is in whole minor units, times have a zone, and no column of ours is a fraction.",
        query=MONEY,
        values=lambda: {"ours": f"^({'|'.join(OURS)})_"},
    ),
    Invariant(
        name="config.months_are_made",
        guarantee=6,
        says="This month and the next have their own part in every table that is kept by months.",
        query=AHEAD,
    ),
    Invariant(
        name="config.default_parts_are_empty",
        guarantee=6,
        says="No row had to go where no month's part was made for it.",
        query=DEFAULTS,
    ),
)
