"""Delivery attempts, partitioned by month and append-only."""

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
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON public.outbox_delivery
    FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON public.outbox_delivery_default
    FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("outbox", "0001_first"), ("ledger", "0002_rows")]
    operations = [migrations.RunSQL(DELIVERIES, "DROP TABLE public.outbox_delivery")]
