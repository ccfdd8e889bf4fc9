-- Every change of a watched row, written by its trigger in the transaction of the change.
CREATE TABLE public.ledger_row_change (
    id bigint GENERATED ALWAYS AS IDENTITY,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempt_id uuid,
    call_index integer,
    message_id bigint,
    subject bigint,
    login text NOT NULL DEFAULT session_user,
    table_name text NOT NULL,
    operation text NOT NULL CONSTRAINT ledger_row_change_operation_known CHECK (operation IN ('INSERT', 'UPDATE', 'DELETE')),
    before jsonb,
    after jsonb,
    CONSTRAINT ledger_row_change_pkey PRIMARY KEY (id, changed_at)
) PARTITION BY RANGE (changed_at);
CREATE TABLE public.ledger_row_change_default PARTITION OF public.ledger_row_change DEFAULT;
CREATE INDEX ledger_row_change_of_attempt ON public.ledger_row_change (attempt_id, call_index);
CREATE INDEX ledger_row_change_of_subject ON public.ledger_row_change (subject, id);
CREATE INDEX ledger_row_change_of_message ON public.ledger_row_change (message_id) WHERE message_id IS NOT NULL;

-- Runs as the owner: no login may write this table itself. Its settings are transaction-local:
-- backstop.attempt and backstop.call from the tools node, backstop.message from settling, backstop.trace to send
-- changes as notices, which survive a rollback.
CREATE FUNCTION public.ledger_record_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old_row jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    new_row jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
BEGIN
    INSERT INTO public.ledger_row_change (attempt_id, call_index, message_id, subject, table_name, operation, before, after)
    VALUES (nullif(current_setting('backstop.attempt', true), '')::uuid,
            nullif(current_setting('backstop.call', true), '')::integer,
            nullif(current_setting('backstop.message', true), '')::bigint,
            coalesce(coalesce(new_row, old_row) ->> 'customer_id', coalesce(new_row, old_row) ->> 'id')::bigint,
            TG_TABLE_NAME, TG_OP, old_row, new_row);
    IF current_setting('backstop.trace', true) = 'on' THEN
        RAISE NOTICE 'backstop.change' USING DETAIL = jsonb_build_object(
            'call_index', nullif(current_setting('backstop.call', true), '')::integer,
            'table_name', TG_TABLE_NAME, 'operation', TG_OP, 'before', old_row, 'after', new_row)::text;
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION public.ledger_record_change() FROM PUBLIC;
