-- Evidence is never changed or deleted, by the owner neither. A superuser may truncate: tests do.
CREATE FUNCTION public.ledger_append_only() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' AND (SELECT rolsuper FROM pg_roles WHERE rolname = session_user) THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
REVOKE ALL ON FUNCTION public.ledger_append_only() FROM PUBLIC;
