"""Row changes, their trigger, append-only guards and monthly partitions."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_first")]
    operations = [
        migrations.RunSQL((SQL / "partitions.sql").read_text(), "DROP FUNCTION public.ledger_make_partitions(integer)"),
        migrations.RunSQL(
            (SQL / "row_changes.sql").read_text(),
            "DROP FUNCTION public.ledger_record_change() CASCADE; DROP TABLE public.ledger_row_change",
        ),
        migrations.RunSQL((SQL / "append_only.sql").read_text(), "DROP FUNCTION public.ledger_append_only() CASCADE"),
        migrations.RunSQL(
            "".join(
                f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON public.{table}"
                " FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only();"
                for table in (
                    "ledger_attempt",
                    "ledger_attempt_outcome",
                    "ledger_execution",
                    "ledger_batch_abort",
                    "ledger_row_change",
                    "ledger_row_change_default",
                )
            ),
            "",
        ),
    ]
