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

# One admin tightens a rule at once; what loosens it carries two names. For amounts more is looser, for a switch, hours
# and uses less is, and a rule that is off is loosest. What counted before is read here, under a lock, so that two changes at
# once are one after the other; a currency's first row follows the row of every currency. Only a rule's very first row says
# itself what counted before it: the tool's own default. A second name is one that ended the request that it confirms.
LOOSENING = """
CREATE FUNCTION public.agent_policy_previous() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE newest record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('agent_policy ' || NEW.rule || ' ' || NEW.tool, 0));
    SELECT value INTO newest FROM public.agent_policy
        WHERE rule = NEW.rule AND tool = NEW.tool AND currency IN (NEW.currency, '')
        ORDER BY currency = NEW.currency DESC, id DESC LIMIT 1;
    IF FOUND THEN
        NEW.previous := newest.value;
    END IF;
    IF NEW.request_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM public.agent_policy_request r WHERE r.id = NEW.request_id AND r.rule = NEW.rule AND r.tool = NEW.tool
            AND r.currency = NEW.currency AND r.value IS NOT DISTINCT FROM NEW.value AND r.asked_by = NEW.set_by
            AND r.outcome = 'confirmed' AND r.ended_by = NEW.confirmed_by) THEN
        RAISE EXCEPTION 'this is not what was asked for and confirmed' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION public.agent_policy_request_ended() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.ended_at IS NULL THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a request that has ended is not changed' USING ERRCODE = '42501';
END $$;
REVOKE ALL ON FUNCTION public.agent_policy_previous(), public.agent_policy_request_ended() FROM PUBLIC;
CREATE TRIGGER previous BEFORE INSERT ON public.agent_policy
    FOR EACH ROW EXECUTE FUNCTION public.agent_policy_previous();
CREATE TRIGGER ended_once BEFORE UPDATE OR DELETE ON public.agent_policy_request
    FOR EACH ROW EXECUTE FUNCTION public.agent_policy_request_ended();
ALTER TABLE public.agent_policy ADD CONSTRAINT agent_policy_loosening_needs_two CHECK (
    CASE WHEN rule IN ('kill_switch', 'same_effect', 'first_use') THEN coalesce(value, 0) >= coalesce(previous, 0)
         ELSE coalesce(value, 9223372036854775807) <= coalesce(previous, 9223372036854775807) END
    OR (confirmed_by IS NOT NULL AND confirmed_by <> set_by));
"""
# Adds a batch's amounts to its windows in key order, as the last statement before COMMIT, and refuses what goes over a
# limit: the rows stay locked until COMMIT, so that neither splitting nor a second worker gets by.
WINDOWS = """
CREATE FUNCTION public.agent_window_add(scopes text[], days date[], currencies text[], amounts bigint[], limits bigint[])
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    item record;
    total bigint;
    over jsonb := '[]';
BEGIN
    FOR item IN SELECT * FROM unnest(scopes, days, currencies, amounts, limits) AS t (scope, day, currency, amount, allowed) LOOP
        INSERT INTO public.agent_window AS w (scope, day, currency, amount)
        VALUES (item.scope, item.day, item.currency, item.amount)
        ON CONFLICT (scope, day, currency) DO UPDATE SET amount = w.amount + excluded.amount
        RETURNING w.amount INTO total;
        IF total > item.allowed THEN
            over := over || jsonb_build_object('scope', item.scope, 'currency', item.currency, 'measured', total,
                                               'allowed', item.allowed);
        END IF;
    END LOOP;
    IF over <> '[]' THEN
        RAISE EXCEPTION 'a cumulative limit is exceeded' USING ERRCODE = 'BS002', DETAIL = over::text;
    END IF;
END $$;
REVOKE ALL ON FUNCTION public.agent_window_add(text[], date[], text[], bigint[], bigint[]) FROM PUBLIC;
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
        migrations.RunSQL(
            LOOSENING,
            "ALTER TABLE public.agent_policy DROP CONSTRAINT agent_policy_loosening_needs_two;"
            " DROP TRIGGER previous ON public.agent_policy; DROP FUNCTION public.agent_policy_previous();"
            " DROP TRIGGER ended_once ON public.agent_policy_request; DROP FUNCTION public.agent_policy_request_ended()",
        ),
        migrations.RunSQL(WINDOWS, "DROP FUNCTION public.agent_window_add(text[], date[], text[], bigint[], bigint[])"),
        migrations.RunPython(make_checkpoint_tables, migrations.RunPython.noop),
    ]
