-- Monthly partitions of every partitioned table: this month and `ahead` more. Only the keeper may call it.
CREATE FUNCTION public.ledger_make_partitions(ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parent name;
    child text;
    month date;
    made integer := 0;
BEGIN
    FOR parent IN SELECT c.relname FROM pg_partitioned_table t JOIN pg_class c ON c.oid = t.partrelid
                  WHERE c.relnamespace = 'public'::regnamespace ORDER BY c.relname LOOP
        FOR step IN 0..ahead LOOP
            month := date_trunc('month', timezone('UTC', now()) + make_interval(months => step))::date;
            child := parent || to_char(month, '"_y"YYYY"m"MM');
            IF to_regclass(format('public.%I', child)) IS NULL THEN
                EXECUTE format('CREATE TABLE public.%I PARTITION OF public.%I FOR VALUES FROM (%L) TO (%L)',
                               child, parent, month::timestamp AT TIME ZONE 'UTC',
                               (month + interval '1 month')::timestamp AT TIME ZONE 'UTC');
                -- a statement that names the month's part would pass by the guard of the whole
                IF EXISTS (SELECT FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                           WHERE t.tgname = 'append_only' AND c.relname = parent
                             AND c.relnamespace = 'public'::regnamespace) THEN
                    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON public.%I'
                                   ' FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only()', child);
                END IF;
                made := made + 1;
            END IF;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;
REVOKE ALL ON FUNCTION public.ledger_make_partitions(integer) FROM PUBLIC;
