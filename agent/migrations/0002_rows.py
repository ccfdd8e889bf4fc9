"""Events by month, the fence, and LangGraph's checkpoint tables."""

import psycopg
from django.db import migrations

EVENTS = """
CREATE TABLE public.agent_event (
    thread uuid NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL CONSTRAINT agent_event_kind_known CHECK (kind IN ('feed', 'status', 'escalation')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT agent_event_pkey PRIMARY KEY (thread, seq, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE public.agent_event_default PARTITION OF public.agent_event DEFAULT;
"""

# Every batch and every checkpoint write calls it first: a worker whose fence is old can change nothing.
FENCE = """
CREATE FUNCTION public.agent_fence(thread uuid, fence bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM 1 FROM public.agent_thread t WHERE t.thread = agent_fence.thread AND t.fence = agent_fence.fence FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the lease of this thread was lost' USING ERRCODE = 'BS001';
    END IF;
END $$;
REVOKE ALL ON FUNCTION public.agent_fence(uuid, bigint) FROM PUBLIC;
"""


def make_checkpoint_tables(apps, schema_editor):
    from langgraph.checkpoint.postgres import PostgresSaver

    # a connection of its own: Django's has client-side cursors, the saver needs binary ones
    parameters = schema_editor.connection.get_connection_params()
    wanted = {key: value for key, value in parameters.items() if key not in ("cursor_factory", "context", "prepare_threshold")}
    with psycopg.connect(**wanted, autocommit=True) as conn:
        PostgresSaver(conn).setup()


class Migration(migrations.Migration):
    atomic = False  # the saver makes its indexes concurrently
    dependencies = [("agent", "0001_first"), ("ledger", "0002_rows")]
    operations = [
        migrations.RunSQL(EVENTS, "DROP TABLE public.agent_event"),
        migrations.RunSQL(FENCE, "DROP FUNCTION public.agent_fence(uuid, bigint)"),
        migrations.RunSQL(
            "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON public.agent_policy"
            " FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only();",
            "DROP TRIGGER append_only ON public.agent_policy",
        ),
        migrations.RunPython(make_checkpoint_tables, migrations.RunPython.noop),
    ]
