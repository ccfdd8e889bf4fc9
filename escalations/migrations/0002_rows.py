"""What was proposed, signed and decided is append-only; the requester is carried into signature and decision."""

from django.db import migrations

TABLES = ("escalations_revision", "escalations_signature", "escalations_decision", "escalations_act")
CARRIED = TABLES[1:3]
# Whoever writes a signature or a decision cannot leave out who asked, or say how many have signed: four eyes would see
# nothing then.
CARRY = """
CREATE FUNCTION public.escalations_carry_signature() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.requested_by := (SELECT requested_by FROM public.escalations_escalation WHERE id = NEW.escalation_id);
    SELECT author, lowers INTO NEW.editor, NEW.lowers FROM public.escalations_revision
        WHERE id = NEW.revision_id AND escalation_id = NEW.escalation_id;
    NEW.allowed := (SELECT allowed FROM public.escalations_preview
                    WHERE id = NEW.preview_id AND revision_id = NEW.revision_id AND outcome = 'clean');
    RETURN NEW;
END $$;
CREATE FUNCTION public.escalations_carry_decision() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.requested_by := (SELECT requested_by FROM public.escalations_escalation WHERE id = NEW.escalation_id);
    NEW.needs := (SELECT p.needs FROM public.escalations_preview p JOIN public.escalations_revision r ON r.id = p.revision_id
                  WHERE p.id = NEW.preview_id AND r.id = NEW.revision_id AND r.escalation_id = NEW.escalation_id);
    NEW.signed := (SELECT count(*) FROM public.escalations_signature s
                   JOIN public.escalations_preview p ON p.id = s.preview_id
                   JOIN public.escalations_preview shown ON shown.id = NEW.preview_id AND shown.digest = p.digest
                   WHERE s.revision_id = NEW.revision_id);
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION public.escalations_carry_signature(), public.escalations_carry_decision() FROM PUBLIC;
"""
# A preview is filled in once, and is what was shown from then on.
MADE_ONCE = """
CREATE FUNCTION public.escalations_made_once() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.made_at IS NULL THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a preview that was made is not changed' USING ERRCODE = '42501';
END $$;
REVOKE ALL ON FUNCTION public.escalations_made_once() FROM PUBLIC;
CREATE TRIGGER made_once BEFORE UPDATE OR DELETE ON public.escalations_preview
    FOR EACH ROW EXECUTE FUNCTION public.escalations_made_once();
"""


class Migration(migrations.Migration):
    dependencies = [("escalations", "0001_first"), ("ledger", "0002_rows")]
    operations = [
        migrations.RunSQL(
            "".join(
                f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON public.{table}"
                " FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only();"
                for table in TABLES
            ),
            "".join(f"DROP TRIGGER append_only ON public.{table};" for table in TABLES),
        ),
        migrations.RunSQL(
            "".join(
                f"ALTER TABLE public.{table} ADD CONSTRAINT {table}_requester FOREIGN KEY (escalation_id, requested_by)"
                " REFERENCES public.escalations_escalation (id, requested_by);"
                for table in CARRIED
            ),
            "".join(f"ALTER TABLE public.{table} DROP CONSTRAINT {table}_requester;" for table in CARRIED),
        ),
        migrations.RunSQL(
            CARRY,
            "DROP FUNCTION public.escalations_carry_signature(); DROP FUNCTION public.escalations_carry_decision()",
        ),
        migrations.RunSQL(
            MADE_ONCE,
            "DROP TRIGGER made_once ON public.escalations_preview; DROP FUNCTION public.escalations_made_once()",
        ),
        migrations.RunSQL(
            "".join(
                f"CREATE TRIGGER carry BEFORE INSERT ON public.{table}"
                f" FOR EACH ROW EXECUTE FUNCTION public.{table.replace('_', '_carry_')}();"
                for table in CARRIED
            ),
            "".join(f"DROP TRIGGER carry ON public.{table};" for table in CARRIED),
        ),
    ]
