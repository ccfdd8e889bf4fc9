"""Which database login a management command runs as; everything unlisted runs as `web`."""

LOGINS = {
    "make_logins": "superuser",
    "demo": "owner",
    "demo_payments": "outbox",
    "migrate": "owner",
    "makemigrations": "owner",
    "grant": "owner",
    "check_invariants": "keeper",
    "reconcile": "outbox",  # the only one that may ask the provider
    "story --naive": "owner",  # makes a scratch schema; the story itself is told as web
}


def login_for(arguments: list[str]) -> str:
    """Return the login of the command in `arguments` (as in `sys.argv[1:]`); an option may need another one."""
    command = arguments[0] if arguments else ""
    wanted = [f"{command} {option}" for option in arguments[1:]]
    return next((LOGINS[name] for name in [*wanted, command] if name in LOGINS), "web")
