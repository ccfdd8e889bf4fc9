"""Which database login a management command runs as; everything unlisted runs as `web`."""

LOGINS = {
    "make_logins": "superuser",
    "demo": "owner",
    "demo_payments": "outbox",
    "migrate": "owner",
    "grant": "owner",
    "check_invariants": "keeper",
    "verify_audit": "keeper",
    "explain": "keeper",
    "reconcile": "outbox",
}


def login_for(arguments: list[str]) -> str:
    """Return the login of the command in `arguments` (as in `sys.argv[1:]`)."""
    return LOGINS.get(arguments[0] if arguments else "", "web")
