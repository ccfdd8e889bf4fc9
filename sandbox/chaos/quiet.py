"""Waiting until nothing is under way any more, and saying what still is."""

import time
from collections.abc import Callable

import psycopg

from sandbox.chaos.injuries import Injuries
from sandbox.chaos.people import Person, Unanswered
from sandbox.chaos.places import Place

LOOK = 0.5  # seconds between two looks
TOLD = 15.0  # seconds between two jumps of the sandbox's clock, for payments and refunds that take their minute
JUMP = 70
# A message is not due that waits behind one which is for a person to settle.
MOVING = """
SELECT 'conversation ' || coalesce(c.id::text, t.thread::text) || ' is ' || t.state || ' (' || t.activity || ')'
FROM public.agent_thread t LEFT JOIN public.agent_conversation c USING (thread) WHERE t.state IN ('running', 'waiting', 'stuck')
UNION ALL
SELECT 'message ' || m.id || ' of a staff member is queued' FROM public.agent_staff_message m WHERE m.state = 'queued'
UNION ALL
SELECT 'escalation ' || e.id || ' (' || e.kind || ') is ' || e.state FROM public.escalations_escalation e
WHERE e.state IN ('open', 'claimed', 'decided', 'resumed')
UNION ALL
SELECT 'outbox message ' || m.id || ' is ' || m.state || coalesce(' (' || m.last_error || ')', '') || ' until '
    || coalesce(m.leased_until, m.next_attempt_at)::time(0)
FROM public.outbox_message m WHERE m.state IN ('ready', 'leased', 'uncertain', 'accepted') AND NOT EXISTS (
    SELECT FROM public.outbox_message older WHERE older.aggregate = m.aggregate AND older.id < m.id AND older.state = 'dead')
UNION ALL
SELECT 'event ' || w.event_id || ' is not processed' FROM public.outbox_webhook_event w WHERE w.processed_at IS NULL
UNION ALL
SELECT 'request ' || r.id || ' about an outbox message is open' FROM public.outbox_request r WHERE r.carried_out_at IS NULL
UNION ALL
SELECT 'scan ' || s.id || ' is under way' FROM public.escalations_scan s WHERE s.finished_at IS NULL AND s.asked_by IS NOT NULL
"""
STUCK = "SELECT c.id FROM public.agent_thread t JOIN public.agent_conversation c USING (thread) WHERE t.state = 'stuck'"


def wait(place: Place, injuries: Injuries, *, person: Person, seconds: float, working: Callable[[], bool]) -> list[str]:
    """Wait until all is quiet and return nothing, or after `seconds` what is not quiet.

    A stuck conversation was put before a person: a person presses Resume.
    """
    deadline, jumped = time.monotonic() + seconds, 0.0
    while moving := _moving(place, injuries, working):
        if time.monotonic() > deadline:
            return moving
        if time.monotonic() > jumped + TOLD and place.sandbox("POST", "clock", {"advance": _until_told(place)}):
            jumped = time.monotonic()
        _resume(place, person)
        time.sleep(LOOK)
    return []


def _moving(place: Place, injuries: Injuries, working: Callable[[], bool]) -> list[str]:
    """Return what is under way; a part may still strike itself at a point that it was armed with."""
    injuries.let_go_on(all_of_them=True)
    works, told = working(), place.sandbox("GET", "webhooks")  # asked first: an event that has come since is found in the books
    try:
        with place.connect("superuser") as conn:
            found = [row[0] for row in conn.execute(MOVING).fetchall()]
    except psycopg.OperationalError:
        return ["PostgreSQL does not answer"]
    if found:
        return found
    if not works:
        return ["a part does not work"]
    if told is None:
        return ["the Stripe sandbox does not answer"]
    return [f"event {item['event']} is not delivered" for item in told["deliveries"] if item["state"] == "waiting"]


def _until_told(place: Place) -> int:
    """Return in how many seconds of the sandbox's clock it tells what it could not tell: after some tries it waits for hours."""
    told, clock = place.sandbox("GET", "webhooks"), place.sandbox("GET", "clock")
    if told is None or clock is None:
        return JUMP
    waiting = [item["due"] - clock["now"] for item in told["deliveries"] if item["state"] == "waiting"]
    return max(JUMP, *waiting) if waiting else JUMP


def _resume(place: Place, person: Person) -> None:
    """Press Resume in stuck conversations; while something is still down it is pressed at the next look."""
    try:
        with place.connect("superuser") as conn:
            stuck = conn.execute(STUCK).fetchall()
        for (number,) in stuck:
            person.press(number, "resume")
    except (psycopg.OperationalError, Unanswered):
        return
