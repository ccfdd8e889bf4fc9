"""Delivery attempts, partitioned by month and append-only; what lets a waiting message go, sets a rate, deletes what is old."""

from django.db import migrations

DELIVERIES = """
CREATE TABLE public.outbox_delivery (
    id bigint GENERATED ALWAYS AS IDENTITY,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    message_id bigint NOT NULL,
    lease_token uuid,
    step text NOT NULL,
    outcome text NOT NULL,
    http_status integer,
    request_id text,
    provider_id text,
    provider_status text,
    replayed boolean NOT NULL DEFAULT false,
    stale boolean NOT NULL DEFAULT false,
    error text,
    duration_ms integer NOT NULL,
    CONSTRAINT outbox_delivery_pkey PRIMARY KEY (id, started_at)
) PARTITION BY RANGE (started_at);
CREATE TABLE public.outbox_delivery_default PARTITION OF public.outbox_delivery DEFAULT;
CREATE INDEX outbox_delivery_of_message ON public.outbox_delivery (message_id, id);
CREATE INDEX outbox_delivery_lost ON public.outbox_delivery (started_at) WHERE stale OR error = 'the worker was lost';
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON public.outbox_delivery
    FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON public.outbox_delivery_default
    FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only();
"""

# Whoever finishes a message lets the next one of its aggregate go, in the same transaction. A message that is being written just
# now holds the aggregate's lock and may have seen this one unfinished: the sweep (outbox/leases.py) finds it, nobody waits here.
NEXT = """
CREATE FUNCTION public.outbox_message_unblock_next() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pg_try_advisory_xact_lock(hashtextextended(NEW.aggregate, 0)) THEN
        UPDATE public.outbox_message SET blocked = false
        WHERE id = (SELECT m.id FROM public.outbox_message m
                    WHERE m.aggregate = NEW.aggregate AND m.blocked AND m.state = 'ready' ORDER BY m.id LIMIT 1)
          AND NOT EXISTS (SELECT FROM public.outbox_message older
                          WHERE older.aggregate = NEW.aggregate AND older.id < outbox_message.id
                            AND older.state IN ('ready', 'leased', 'accepted', 'uncertain', 'dead'));
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION public.outbox_message_unblock_next() FROM PUBLIC;
CREATE TRIGGER unblock_next AFTER UPDATE OF state ON public.outbox_message FOR EACH ROW
    WHEN (NEW.state IN ('succeeded', 'rejected', 'cancelled') AND OLD.state NOT IN ('succeeded', 'rejected', 'cancelled'))
    EXECUTE FUNCTION public.outbox_message_unblock_next();
"""

# What an admin sets counts at once: every claim reads it from the destination's row, which pages may not write.
RATES = """
CREATE FUNCTION public.outbox_rate_counts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO public.outbox_destination (name, rate, burst) VALUES (NEW.destination, NEW.rate, NEW.burst)
    ON CONFLICT (name) DO UPDATE SET rate = excluded.rate, burst = excluded.burst;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION public.outbox_rate_counts() FROM PUBLIC;
CREATE TRIGGER counts AFTER INSERT ON public.outbox_rate FOR EACH ROW EXECUTE FUNCTION public.outbox_rate_counts();
"""

# Evidence goes with its message, and both only by the function that prunes: it takes what is finished and a month old at least.
# Which messages are needed no longer is for its caller (outbox/pruning.py) to find out.
PRUNING = """
CREATE FUNCTION public.outbox_delivery_goes_with_message() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM public.outbox_message m WHERE m.id = OLD.message_id) THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN OLD;
END $$;
REVOKE ALL ON FUNCTION public.outbox_delivery_goes_with_message() FROM PUBLIC;
CREATE TRIGGER goes_with_message BEFORE DELETE ON public.outbox_delivery
    FOR EACH ROW EXECUTE FUNCTION public.outbox_delivery_goes_with_message();
CREATE TRIGGER not_deleted BEFORE DELETE ON public.outbox_delivery
    FOR EACH STATEMENT WHEN (current_setting('backstop.pruning', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION public.ledger_append_only();

CREATE FUNCTION public.outbox_prune(messages bigint[], finished_before timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone bigint[];
BEGIN
    IF finished_before > now() - interval '30 days' THEN
        RAISE EXCEPTION 'what is younger than 30 days is kept' USING ERRCODE = 'insufficient_privilege';
    END IF;
    WITH deleted AS (
        DELETE FROM public.outbox_message m
        WHERE m.id = ANY(messages) AND m.state IN ('succeeded', 'rejected', 'cancelled') AND m.finished_at < finished_before
          AND NOT EXISTS (SELECT FROM public.outbox_request r WHERE r.message_id = m.id AND r.carried_out_at IS NULL)
        RETURNING m.id)
    SELECT coalesce(array_agg(id), '{}') INTO gone FROM deleted;
    DELETE FROM public.outbox_request WHERE message_id = ANY(gone);
    PERFORM set_config('backstop.pruning', 'on', true);
    DELETE FROM public.outbox_delivery WHERE message_id = ANY(gone);
    PERFORM set_config('backstop.pruning', '', true);
    RETURN cardinality(gone);
END $$;
CREATE FUNCTION public.outbox_prune_events(processed_before timestamptz, most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone integer;
BEGIN
    IF processed_before > now() - interval '30 days' THEN
        RAISE EXCEPTION 'what is younger than 30 days is kept' USING ERRCODE = 'insufficient_privilege';
    END IF;
    DELETE FROM public.outbox_webhook_event WHERE event_id IN (
        SELECT e.event_id FROM public.outbox_webhook_event e
        WHERE e.processed_at < processed_before
          AND NOT EXISTS (SELECT FROM public.outbox_message m WHERE m.provider_id = e.object_id)
        LIMIT most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;
REVOKE ALL ON FUNCTION public.outbox_prune(bigint[], timestamptz), public.outbox_prune_events(timestamptz, integer) FROM PUBLIC;
"""
NO_PRUNING = """
DROP FUNCTION public.outbox_prune_events(timestamptz, integer), public.outbox_prune(bigint[], timestamptz);
DROP FUNCTION public.outbox_delivery_goes_with_message() CASCADE;
"""


class Migration(migrations.Migration):
    dependencies = [("outbox", "0001_first"), ("ledger", "0002_rows")]
    operations = [
        migrations.RunSQL(DELIVERIES, "DROP TABLE public.outbox_delivery"),
        migrations.RunSQL(NEXT, "DROP FUNCTION public.outbox_message_unblock_next() CASCADE"),
        migrations.RunSQL(RATES, "DROP FUNCTION public.outbox_rate_counts() CASCADE"),
        migrations.RunSQL(PRUNING, NO_PRUNING),
    ]
