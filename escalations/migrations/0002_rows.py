"""What was proposed, signed and decided is append-only; the requester is carried into signature and decision."""

from django.db import migrations

TABLES = ("escalations_revision", "escalations_signature", "escalations_decision")


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
    ]
