"""Pauses of more than a day after some failures: a trigger of the simulation's own database decides, from the seed.

It sees every failure as it is written, whichever worker writes it; asked from outside, some would be tried again before.
"""

from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

SHARE = 0.15  # of failures
LEAST, MORE = 24 * 3600 + 60, 6 * 3600  # seconds

# A failure is a message that was taken up and is still not settled. `number` counts those of one message.
MAKE = """
CREATE TABLE public.simulation_failure (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, message_id bigint NOT NULL, number integer NOT NULL,
    pause_seconds integer);
CREATE FUNCTION public.simulation_pause() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    nth integer := (SELECT count(*) + 1 FROM public.simulation_failure f WHERE f.message_id = NEW.id);
    dice bigint := hashtextextended(NEW.dedupe_key || ':' || nth, {seed}) & 2147483647;
    pause integer := CASE WHEN dice % 10000 < {share} THEN {least} + dice / 10000 % {more} END;
BEGIN
    INSERT INTO public.simulation_failure (message_id, number, pause_seconds) VALUES (NEW.id, nth, pause);
    IF pause IS NOT NULL THEN
        NEW.next_attempt_at := now() + make_interval(secs => pause);
    END IF;
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION public.simulation_pause() FROM PUBLIC;
CREATE TRIGGER simulation_pause BEFORE UPDATE ON public.outbox_message FOR EACH ROW
WHEN (OLD.state = 'leased' AND NEW.state IN ('ready', 'uncertain', 'accepted') AND NEW.last_error IS NOT NULL)
EXECUTE FUNCTION public.simulation_pause();
"""
COUNT = """
SELECT count(*), count(pause_seconds), coalesce(max(number), 0) FROM public.simulation_failure
"""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many failures there were, how many were followed by a pause, and how many one message had at most."""

    failures: int
    pauses: int
    most: int


def make(conn: Connection[Any], *, seed: int) -> None:
    """Have pauses from now on; `conn` is the owner's."""
    wanted = {"seed": seed, "share": round(SHARE * 10_000), "least": LEAST, "more": MORE}
    conn.execute(sql.SQL(MAKE).format(**{name: sql.Literal(value) for name, value in wanted.items()}))


def stop(conn: Connection[Any]) -> None:
    """Have no more pauses."""
    conn.execute("DROP TRIGGER simulation_pause ON public.outbox_message")


def count(conn: Connection[Any]) -> Counts:
    """Return what there was."""
    row = conn.execute(COUNT).fetchone()
    assert row is not None
    return Counts(failures=row[0], pauses=row[1], most=row[2])
