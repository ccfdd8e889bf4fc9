"""What Django cannot say: keys that carry the customer and the currency, change triggers, the balance check."""

from django.db import migrations

WATCHED = ("customer", "credit_account", "invoice", "payment", "refund", "refund_reversal", "credit_memo", "credit_entry")

# Referential checks bypass row-level security: a key without the customer would reach into another customer's rows.
KEYS = """
ALTER TABLE public.billing_credit_account ADD CONSTRAINT billing_credit_account_currency
    FOREIGN KEY (customer_id, currency) REFERENCES public.billing_customer (id, currency);
ALTER TABLE public.billing_invoice ADD CONSTRAINT billing_invoice_customer_currency
    FOREIGN KEY (customer_id, currency) REFERENCES public.billing_customer (id, currency);
ALTER TABLE public.billing_payment ADD CONSTRAINT billing_payment_customer_currency
    FOREIGN KEY (customer_id, currency) REFERENCES public.billing_customer (id, currency);
ALTER TABLE public.billing_payment ADD CONSTRAINT billing_payment_invoice
    FOREIGN KEY (customer_id, invoice_id) REFERENCES public.billing_invoice (customer_id, id);
ALTER TABLE public.billing_refund ADD CONSTRAINT billing_refund_customer_currency
    FOREIGN KEY (customer_id, currency) REFERENCES public.billing_customer (id, currency);
ALTER TABLE public.billing_refund ADD CONSTRAINT billing_refund_payment
    FOREIGN KEY (customer_id, payment_id) REFERENCES public.billing_payment (customer_id, id);
ALTER TABLE public.billing_refund_reversal ADD CONSTRAINT billing_refund_reversal_customer_currency
    FOREIGN KEY (customer_id, currency) REFERENCES public.billing_customer (id, currency);
ALTER TABLE public.billing_refund_reversal ADD CONSTRAINT billing_refund_reversal_refund
    FOREIGN KEY (customer_id, refund_id) REFERENCES public.billing_refund (customer_id, id);
ALTER TABLE public.billing_credit_memo ADD CONSTRAINT billing_credit_memo_customer_currency
    FOREIGN KEY (customer_id, currency) REFERENCES public.billing_customer (id, currency);
ALTER TABLE public.billing_credit_memo ADD CONSTRAINT billing_credit_memo_invoice
    FOREIGN KEY (customer_id, invoice_id) REFERENCES public.billing_invoice (customer_id, id);
ALTER TABLE public.billing_credit_entry ADD CONSTRAINT billing_credit_entry_customer_currency
    FOREIGN KEY (customer_id, currency) REFERENCES public.billing_customer (id, currency);
ALTER TABLE public.billing_credit_entry ADD CONSTRAINT billing_credit_entry_invoice
    FOREIGN KEY (customer_id, invoice_id) REFERENCES public.billing_invoice (customer_id, id);
ALTER TABLE public.billing_credit_entry ADD CONSTRAINT billing_credit_entry_credit_memo
    FOREIGN KEY (customer_id, credit_memo_id) REFERENCES public.billing_credit_memo (customer_id, id);
"""

# At the end of each call (SET CONSTRAINTS ALL IMMEDIATE) and at COMMIT: balance = last entry, entries chain.
BALANCE = """
CREATE FUNCTION public.billing_check_credit_balance() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    account public.billing_credit_account;
    chained boolean;
BEGIN
    SELECT * INTO account FROM public.billing_credit_account a WHERE a.customer_id = NEW.customer_id;
    SELECT account.balance_minor = e.balance_after_minor
           AND e.balance_after_minor - e.amount_minor = coalesce(
               (SELECT p.balance_after_minor FROM public.billing_credit_entry p
                WHERE p.customer_id = e.customer_id AND p.number = e.number - 1), 0)
      INTO chained FROM public.billing_credit_entry e
     WHERE e.customer_id = account.customer_id AND e.number = account.entries;
    chained := coalesce(chained, account.entries = 0 AND account.balance_minor = 0);
    IF TG_TABLE_NAME = 'billing_credit_entry' THEN
        chained := chained AND NEW.number <= account.entries;  -- no entry that the account does not count
    END IF;
    IF chained IS DISTINCT FROM true THEN
        RAISE EXCEPTION 'the credit balance differs from its entries' USING ERRCODE = 'check_violation',
            CONSTRAINT = 'billing_credit_balance_is_sum', TABLE = 'billing_credit_account';
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION public.billing_check_credit_balance() FROM PUBLIC;
CREATE CONSTRAINT TRIGGER balance_is_sum AFTER INSERT OR UPDATE ON public.billing_credit_account
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.billing_check_credit_balance();
CREATE CONSTRAINT TRIGGER balance_is_sum AFTER INSERT ON public.billing_credit_entry
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.billing_check_credit_balance();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON public.billing_credit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON public.billing_refund_reversal
    FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_first"), ("ledger", "0002_rows")]
    operations = [
        migrations.RunSQL(KEYS, ""),
        migrations.RunSQL(BALANCE, "DROP FUNCTION public.billing_check_credit_balance() CASCADE"),
        migrations.RunSQL(
            "".join(
                f"CREATE TRIGGER record_change AFTER INSERT OR UPDATE OR DELETE ON public.billing_{table}"
                " FOR EACH ROW EXECUTE FUNCTION public.ledger_record_change();"
                for table in WATCHED
            ),
            "".join(f"DROP TRIGGER record_change ON public.billing_{table};" for table in WATCHED),
        ),
    ]
