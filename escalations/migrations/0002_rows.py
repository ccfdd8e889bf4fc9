"""What was proposed, signed and decided is append-only; the requester is carried into signature and decision."""

from django.db import migrations

TABLES = ("escalations_revision", "escalations_signature", "escalations_decision")
# Whoever writes a signature or a decision cannot leave out who asked: four eyes would see nothing then.
CARRY = """
CREATE FUNCTION public.escalations_carry_requester() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.requested_by := (SELECT requested_by FROM public.escalations_escalation WHERE id = NEW.escalation_id);
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION public.escalations_carry_requester() FROM PUBLIC;
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
                for table in TABLES[1:]
            ),
            "".join(f"ALTER TABLE public.{table} DROP CONSTRAINT {table}_requester;" for table in TABLES[1:]),
        ),
        migrations.RunSQL(CARRY, "DROP FUNCTION public.escalations_carry_requester()"),
        migrations.RunSQL(
            "".join(
                f"CREATE TRIGGER carry_requester BEFORE INSERT ON public.{table}"
                " FOR EACH ROW EXECUTE FUNCTION public.escalations_carry_requester();"
                for table in TABLES[1:]
            ),
            "".join(f"DROP TRIGGER carry_requester ON public.{table};" for table in TABLES[1:]),
        ),
    ]
