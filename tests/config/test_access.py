"""Every route × every role. The routes come from the URL conf: a new one fails here until its row is written."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

ROLES = ("support", "reviewer", "admin")
ALL, DESK = frozenset(ROLES), frozenset({"reviewer", "admin"})
SUPPORT, REVIEWER, ADMIN = frozenset({"support"}), frozenset({"reviewer"}), frozenset({"admin"})
STRANGER = "not logged in"
LOGGED_IN = frozenset({*ROLES, None})  # also whoever has no role
ANYBODY = LOGGED_IN | {STRANGER}
# route → (who may read it, who may post to it); None: the method is not taken
ACCESS: dict[str, tuple[frozenset[Any] | None, frozenset[Any] | None]] = {
    "home": (ALL, None),
    "login": (ANYBODY, ANYBODY),
    "logout": (None, ANYBODY),
    "healthz": (ANYBODY, None),
    "agent:conversations": (ALL, None),
    "agent:new": (SUPPORT, SUPPORT),
    "agent:conversation": (ALL, None),
    "agent:feed": (ALL, None),
    "agent:stream": (ALL, None),
    "agent:send": (None, SUPPORT),
    "agent:edit": (None, SUPPORT),
    "agent:cancel": (None, SUPPORT),
    "agent:stop": (None, SUPPORT),
    "agent:resume": (None, ALL),
    "agent:withdraw": (None, SUPPORT),
    "agent:undo": (None, SUPPORT | ADMIN),
    "agent:step_in": (None, SUPPORT | REVIEWER),
    "agent:say": (None, SUPPORT | REVIEWER),
    "agent:hand_back": (None, ALL),
    "agent:limits": (ADMIN, None),
    "agent:pause": (None, ADMIN),
    "agent:send_after": (None, ADMIN),
    "agent:rate": (None, ADMIN),
    "agent:limit": (ADMIN, None),
    "agent:set_limit": (None, ADMIN),
    "agent:answer_request": (None, ADMIN),
    "agent:api_conversations": (ALL, SUPPORT),
    "agent:api_conversation": (ALL, None),
    "agent:api_messages": (None, SUPPORT),
    "agent:api_stop": (None, SUPPORT),
    "agent:api_resume": (None, ALL),
    "agent:api_withdraw": (None, SUPPORT),
    "agent:api_undo": (None, SUPPORT | ADMIN),
    "agent:api_step_in": (None, SUPPORT | REVIEWER),
    "agent:api_say": (None, SUPPORT | REVIEWER),
    "agent:api_hand_back": (None, ALL),
    "escalations:inbox": (DESK, REVIEWER),
    "escalations:tray": (REVIEWER, None),
    "escalations:next": (REVIEWER, REVIEWER),
    "escalations:escalation": (DESK, None),
    "escalations:result": (DESK, None),
    "escalations:claim": (None, REVIEWER),
    "escalations:release": (None, REVIEWER),
    "escalations:presence": (None, DESK),
    "escalations:reassign": (None, REVIEWER),
    "escalations:snooze": (None, REVIEWER),
    "escalations:wake": (None, REVIEWER),
    "escalations:edit": (None, REVIEWER),
    "escalations:drop": (None, REVIEWER),
    "escalations:take_over": (None, REVIEWER),
    "escalations:preview": (None, REVIEWER),
    "escalations:opens_next": (None, REVIEWER),
    "escalations:decide": (None, REVIEWER),
    "escalations:run": (None, REVIEWER),
    "escalations:decisions": (DESK, None),
    "escalations:reconcile": (DESK, None),
    "escalations:scan": (None, DESK),
    "escalations:disagreement": (DESK, None),
    "escalations:look_up": (None, REVIEWER),
    "escalations:choose": (None, REVIEWER),
    "ledger:executions": (DESK, None),
    "ledger:attempts": (DESK, None),
    "ledger:attempt": (DESK, None),
    "ledger:find": (LOGGED_IN, None),
    "outbox:messages": (ADMIN, None),
    "outbox:message": (ADMIN, None),
    "outbox:cancel": (None, ADMIN),
    "outbox:replay": (None, ADMIN),
    "outbox:look_up": (None, ADMIN),
    "outbox:undo": (None, ADMIN),
    "outbox:several": (ADMIN, ADMIN),
    "outbox:resume": (None, ADMIN),
    "outbox:webhook": (None, ANYBODY),
    "sandbox:story": (ALL, None),
    "sandbox:tell": (None, SUPPORT),
    "sandbox:break": (ALL, None),
    "sandbox:broken": (ALL, None),
    "sandbox:strip": (ANYBODY, None),  # it asks by itself: while PostgreSQL is down nobody's session can be read
    "sandbox:ask": (None, SUPPORT),
    "sandbox:act": (None, ALL),
    "sandbox:objects": (ADMIN, None),
    "sandbox:money": (ADMIN, None),
    "sandbox:faults": (ADMIN, None),
    "sandbox:add_fault": (None, ADMIN),
    "sandbox:lift_fault": (None, ADMIN),
    "sandbox:set_limit": (None, ADMIN),
    "sandbox:webhooks": (ADMIN, None),
    "sandbox:behave": (None, ADMIN),
    "sandbox:forge": (None, ADMIN),
    "sandbox:clock": (ADMIN, None),
    "sandbox:advance": (None, ADMIN),
    "sandbox:settle": (None, ADMIN),
}
# what a permitted request for something that does not exist, or without its fields, may be answered
DONE = frozenset({200, 302, 400, 404, 409, 415, 422})
SENT_AWAY = frozenset({302, 403, 405})


def routes(resolver: Any = None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Yield every named route with its pattern."""
    for pattern in (resolver or get_resolver()).url_patterns:
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, f"{pattern.namespace}:" if pattern.namespace else prefix)
        else:
            yield f"{prefix}{pattern.name}", pattern


ROUTES = dict(routes())


def address(name: str) -> str:
    """Return the route's address for something that does not exist."""
    kinds = {key: type(converter).__name__ for key, converter in ROUTES[name].pattern.converters.items()}
    absent = {"IntConverter": 4711, "UUIDConverter": uuid.UUID(int=4711)}
    return reverse(name, kwargs={key: absent.get(kind, "nothing") for key, kind in kinds.items()})


def client(role: str | None, *, logged_in: bool = True) -> Client:
    """Return a client with a role; without one it is logged in as somebody who has none, unless told otherwise."""
    made = Client(raise_request_exception=False)
    if logged_in:
        user = get_user_model().objects.create_user(f"person-{role}")
        if role:
            user.groups.add(Group.objects.get(name=role))
        made.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return made


def test_it_knows_every_route() -> None:
    assert set(ROUTES) == set(ACCESS) & set(ROUTES), f"write rows for {sorted(set(ROUTES) - set(ACCESS))}"


def calls() -> Iterator[tuple[str, str, frozenset[Any] | None]]:
    """Yield every route and method with who may use it; logging out comes last."""
    for name in sorted(ROUTES, key=lambda name: name == "logout"):
        yield name, "get", ACCESS[name][0]
        yield name, "post", ACCESS[name][1]


@pytest.mark.parametrize("role", [*ROLES, None])
def test_it_lets_a_role_in_where_it_may_go_and_nowhere_else(database: None, role: str | None) -> None:
    person = client(role)
    for name, method, allowed in calls():
        status = getattr(person, method)(address(name), content_type="application/json").status_code
        expected = {405} if allowed is None else DONE if role in allowed else {403}
        assert status in expected, (name, method, role, status)


def test_it_sends_strangers_to_the_log_in(database: None) -> None:
    stranger = client(None, logged_in=False)
    for name, method, allowed in calls():
        status = getattr(stranger, method)(address(name)).status_code
        open_to_all = ANYBODY in ACCESS[name] and name != "logout"
        expected = {405} if allowed is None and open_to_all else DONE if allowed and STRANGER in allowed else SENT_AWAY
        assert status in expected, (name, method, status)
        assert "/api/" not in address(name) or status in (403, 405), name


def test_it_refuses_every_change_without_a_csrf_token(database: None) -> None:
    person = client("support")
    person.handler.enforce_csrf_checks = True
    for name in ROUTES:
        if ACCESS[name][1] is not None and name != "outbox:webhook":
            assert person.post(address(name)).status_code == 403, name


def test_it_changes_nothing_by_reading(database: None) -> None:
    person = client("admin")
    person.get(reverse("home"))
    before = _counts()
    for name in ROUTES:
        if ACCESS[name][0] is not None:
            person.get(address(name))
            person.head(address(name))
    assert _counts() == before


def _counts() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')")
        found = {}
        for (table,) in cursor.fetchall():
            cursor.execute("SELECT has_table_privilege(%s, 'SELECT')", (table,))
            if cursor.fetchone()[0]:
                cursor.execute(f'SELECT count(*) FROM public."{table}"')
                found[table] = cursor.fetchone()[0]
    return found


def test_it_protects_every_page_from_frames_and_foreign_code(database: None) -> None:
    person = client("admin")
    for name in ROUTES:
        if ACCESS[name][0] is not None and not name.startswith("agent:api") and name != "agent:stream":
            headers = person.get(address(name)).headers
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"], name
            assert "default-src 'none'" in headers["Content-Security-Policy"], name
            assert headers["X-Frame-Options"] == "DENY", name
            assert headers["X-Content-Type-Options"] == "nosniff", name
            assert "no-store" in headers["Cache-Control"], name
