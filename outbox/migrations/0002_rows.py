"""Delivery attempts, partitioned by month and append-only; who lets a waiting message go."""

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
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON public.outbox_delivery
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


class Migration(migrations.Migration):
    dependencies = [("outbox", "0001_first"), ("ledger", "0002_rows")]
    operations = [
        migrations.RunSQL(DELIVERIES, "DROP TABLE public.outbox_delivery"),
        migrations.RunSQL(NEXT, "DROP FUNCTION public.outbox_message_unblock_next() CASCADE"),
    ]
