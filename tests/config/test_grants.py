"""docs/grants.md is what the catalogue says."""

from typing import Any

import psycopg
from django.conf import settings

from config import grants


def test_it_documents_the_catalogue(superuser: "psycopg.Connection[Any]") -> None:
    written = (settings.BASE_DIR / "docs" / "grants.md").read_text()
    assert written == grants.document(superuser), "run manage.py document_grants against a migrated database"


def test_it_lets_no_login_own_or_bypass(superuser: "psycopg.Connection[Any]") -> None:
    found = superuser.execute(
        "SELECT rolname FROM pg_roles WHERE rolname LIKE 'backstop\\_%%'"
        " AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolinherit)"
    ).fetchall()
    assert found == []


def test_it_fixes_the_path_of_every_function_that_runs_as_the_owner(superuser: "psycopg.Connection[Any]") -> None:
    found = superuser.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner::regrole::text = 'backstop_owner'"
        " AND (proconfig IS NULL OR NOT EXISTS (SELECT FROM unnest(proconfig) c WHERE c LIKE 'search_path=%%')"
        "      OR has_function_privilege('public', oid, 'EXECUTE'))"
    ).fetchall()
    assert found == []
