"""How each invariant of the books, the ledger and the conversations is broken by hand, as only a superuser can.

The statements run with triggers and foreign keys off. What changes the books through `seen` is recorded as the owner's work,
so that it breaks nothing but its own invariant. What cannot be broken alone is in ALSO.
"""

WATCHED = ("customer", "credit_account", "invoice", "payment", "refund", "refund_reversal", "credit_memo", "credit_entry")
ALWAYS = "".join(f"ALTER TABLE public.billing_{table} ENABLE ALWAYS TRIGGER record_change;" for table in WATCHED)


def seen(statement: str) -> str:
    """Return the statement as the owner's, whose changes are recorded."""
    return f"{ALWAYS} SET LOCAL SESSION AUTHORIZATION backstop_owner; {statement}; RESET SESSION AUTHORIZATION"


# A change that was written in the transaction of another, so that their number says nothing about either.
TOUCH = "UPDATE public.ledger_row_change SET operation = operation WHERE id = (SELECT max(id) FROM public.ledger_row_change)"
CHARGED = "(SELECT id FROM public.billing_invoice WHERE status = 'paid' AND amount_due_minor > 0)"
DRAFT = "(SELECT min(id) FROM public.billing_invoice WHERE status = 'draft' AND charge_attempt = 0)"
WITHDRAWN = "(SELECT id FROM public.outbox_message WHERE state = 'cancelled')"
OTHER = "(SELECT max(id) FROM public.billing_customer)"
# The first call of a step of two, and one change of a call that has several.
STEP = "(SELECT attempt_id FROM public.ledger_execution WHERE tool = 'QueueCharge' ORDER BY committed_at DESC LIMIT 1)"
CHANGE = """(SELECT min(c.id) FROM public.ledger_row_change c JOIN public.ledger_execution e
    ON e.attempt_id = c.attempt_id AND e.call_index = c.call_index WHERE e.tool = 'ApplyCredit')"""
LOOKED_UP = "(SELECT attempt_id FROM public.ledger_execution WHERE tool = 'LookUpCustomer')"
OPENING = """(SELECT min(c.id) FROM public.ledger_row_change c WHERE c.login = 'backstop_owner' AND c.subject =
    (SELECT subject FROM public.ledger_execution WHERE tool = 'LookUpCustomer'))"""
FAILED = "(SELECT attempt_id FROM public.ledger_attempt_outcome WHERE outcome = 'rolled_back' AND failed_call = 1)"
PARTIAL = "(SELECT attempt_id FROM public.ledger_attempt_outcome WHERE partial)"
WAITS = "(SELECT thread FROM public.agent_thread WHERE state = 'waiting')"
WAITING_ABORT = f"(SELECT attempt_id FROM public.ledger_batch_abort WHERE thread = {WAITS} LIMIT 1)"
QUIET = "(SELECT thread FROM public.agent_conversation ORDER BY id LIMIT 1)"
APPROVED = "(SELECT min(escalation_id) FROM public.escalations_decision WHERE kind = 'approve')"
REFUSED = "(SELECT escalation_id FROM public.escalations_decision WHERE kind = 'reject')"

MONEY = {
    "billing.balance_equals_entries": seen(
        "UPDATE public.billing_credit_account SET balance_minor = balance_minor + 1 WHERE customer_id = 1"
    ),
    "billing.entries_chain": seen(
        "UPDATE public.billing_credit_entry SET balance_after_minor = balance_after_minor + 1 WHERE id = 2"
    ),
    "billing.entry_fits_its_kind": seen(
        "UPDATE public.billing_credit_entry e SET invoice_id = (SELECT min(id) FROM public.billing_invoice i"
        " WHERE i.customer_id = e.customer_id) WHERE customer_id = 1 AND kind = 'opening'"
    ),
    "billing.memo_raised_the_balance": seen(
        "UPDATE public.billing_credit_memo SET amount_minor = amount_minor - 1;"
        " UPDATE public.billing_invoice i SET credited_minor = credited_minor - (SELECT count(*)"
        " FROM public.billing_credit_memo m WHERE m.invoice_id = i.id) WHERE credited_minor > 0"
    ),
    "billing.memos_within_invoice": seen(f"UPDATE public.billing_invoice SET credited_minor = 1 WHERE id = {CHARGED}"),
    "billing.amount_due_adds_up": seen(
        f"UPDATE public.billing_invoice SET amount_due_minor = amount_due_minor - 1 WHERE id = {DRAFT}"
    ),
    "billing.customer_has_account": seen(
        "INSERT INTO public.billing_customer (name, email, currency) VALUES ('Nobody', 'nobody@example.test', 'EUR')"
    ),
    "billing.currency_of_parent": seen(f"UPDATE public.billing_invoice SET currency = 'USD' WHERE id = {DRAFT}"),
    "billing.customer_of_parent": seen(f"UPDATE public.billing_refund SET customer_id = {OTHER}"),
    "billing.books_as_last_changed": "UPDATE public.billing_customer SET card_last4 = '0000' WHERE id = 1",
    "billing.refunds_within_payment": seen("UPDATE public.billing_payment SET refunded_minor = refunded_minor + 1"),
    "billing.invoice_paid_once": seen(f"UPDATE public.billing_invoice SET status = 'paid', paid_at = now() WHERE id = {DRAFT}"),
    "billing.invoice_stands_as_its_charge": seen(f"UPDATE public.billing_invoice SET charge_attempt = 1 WHERE id = {DRAFT}"),
    "billing.payment_is_a_settled_charge": seen("UPDATE public.billing_payment SET provider_payment_id = 'pi_other'"),
    "billing.refund_stands_as_its_message": seen("UPDATE public.billing_refund SET provider_refund_id = 're_other'"),
    "billing.reversal_is_of_its_refund": seen(
        "INSERT INTO public.billing_refund_reversal (customer_id, refund_id, currency, amount_minor, reason)"
        " SELECT customer_id, id, currency, amount_minor, 'any' FROM public.billing_refund LIMIT 1"
    ),
    "billing.refund_is_credited_once": seen("UPDATE public.billing_refund SET provider_credit_note_id = 'cn_other'"),
    "billing.settling_changed_the_books": """UPDATE public.ledger_row_change
        SET message_id = (SELECT id FROM public.outbox_message WHERE topic = 'payment.refund')
        WHERE message_id = (SELECT id FROM public.outbox_message WHERE topic = 'payment.charge' AND state = 'succeeded')""",
    "billing.request_is_what_was_queued": f"""UPDATE public.outbox_message
        SET steps = jsonb_set(steps, '{{0,params,amount}}', '1') WHERE id = {WITHDRAWN}""",
    "billing.queued_call_has_message": f"UPDATE public.outbox_message SET call_index = 0 WHERE id = {WITHDRAWN}",
    "billing.amounts_are_counted": "UPDATE public.agent_window SET amount = amount - 1 WHERE scope = 'customer:1'",
}
LEDGER = {
    "ledger.execution_has_effect": f"UPDATE public.ledger_row_change SET call_index = 0 WHERE attempt_id = {STEP}; {TOUCH}",
    "ledger.reading_changes_nothing": f"""UPDATE public.ledger_row_change SET attempt_id = {LOOKED_UP}, call_index = 0
        WHERE id = {OPENING}; {TOUCH}""",
    "ledger.change_has_cause": f"UPDATE public.ledger_row_change SET attempt_id = gen_random_uuid() WHERE id = {CHANGE}",
    "ledger.change_stays_with_customer": f"UPDATE public.ledger_row_change SET subject = {OTHER} WHERE id = {CHANGE}; {TOUCH}",
    "ledger.effect_in_its_savepoint": f"UPDATE public.ledger_row_change SET operation = operation WHERE id = {CHANGE}",
    "ledger.execution_was_committed": f"""UPDATE public.ledger_attempt SET generation = 1 WHERE id = {STEP};
        UPDATE public.ledger_attempt_outcome SET generation = 1 WHERE attempt_id = {STEP}""",
    "ledger.batch_is_whole": f"""UPDATE public.ledger_attempt
        SET calls = calls || '[{{"index": 2, "id": "x", "tool": "VoidInvoice"}}]' WHERE id = {STEP}""",
    "ledger.partial_was_declared": f"""UPDATE public.ledger_attempt
        SET calls = jsonb_set(calls, '{{0,tool}}', '"QueueCharge"') WHERE id = {PARTIAL}""",
    "ledger.step_ran_in_one_attempt": f"""UPDATE public.ledger_execution SET generation = call_index
        WHERE attempt_id = {STEP}""",
    "ledger.call_ran_once": f"""ALTER TABLE public.ledger_execution DROP CONSTRAINT ledger_execution_pkey;
        INSERT INTO public.ledger_execution SELECT * FROM public.ledger_execution WHERE attempt_id = {LOOKED_UP}""",
    "ledger.no_execution_after_abort": f"""
        INSERT INTO public.ledger_batch_abort (thread, ai_message_id, generation, attempt_id, told)
        SELECT thread, ai_message_id, generation, attempt_id, '[]' FROM public.ledger_execution WHERE attempt_id = {LOOKED_UP}""",
    "ledger.outcome_is_of_its_attempt": f"UPDATE public.ledger_attempt SET calls = '[]' WHERE id = {FAILED}",
    "ledger.undone_is_kept": f"UPDATE public.ledger_attempt_outcome SET undone = '[]' WHERE attempt_id = {FAILED}",
    "ledger.failure_is_named": f"UPDATE public.ledger_attempt_outcome SET detail = NULL WHERE attempt_id = {FAILED}",
    "ledger.told_is_recorded": f"UPDATE public.ledger_batch_abort SET told = '[]' WHERE attempt_id = {WAITING_ABORT}",
    "ledger.one_answer_a_call": f"""
        UPDATE public.ledger_attempt_outcome SET told = told || told WHERE attempt_id = {WAITING_ABORT};
        UPDATE public.ledger_batch_abort SET told = told || told WHERE attempt_id = {WAITING_ABORT}""",
    "ledger.undone_left_nothing": f"UPDATE public.ledger_row_change SET attempt_id = {FAILED} WHERE id = {CHANGE}",
}
THREADS = {
    "agent.acts_for_its_customer": f"UPDATE public.agent_conversation SET subject = {OTHER} WHERE thread = {QUIET}",
    "agent.fence_was_given_out": f"UPDATE public.agent_thread SET fence = 0 WHERE thread = {QUIET}",
    "agent.old_lease_changed_nothing": f"""UPDATE public.agent_thread SET fence = 99;
        UPDATE public.ledger_attempt SET fence = 98 WHERE id = {LOOKED_UP}""",
    "agent.only_running_holds_lease": f"UPDATE public.agent_thread SET lease_owner = 'x' WHERE thread = {QUIET}",
    "agent.waiting_has_question": f"UPDATE public.agent_thread SET state = 'waiting' WHERE thread = {QUIET}",
    "agent.question_is_waited_for": "UPDATE public.agent_thread SET state = 'idle' WHERE state = 'waiting'",
    "agent.stuck_reaches_a_person": f"UPDATE public.agent_thread SET state = 'stuck' WHERE thread = {QUIET}",
    "agent.running_is_driven": f"""UPDATE public.agent_thread SET state = 'running', lease_owner = 'x',
        leased_until = now() - interval '1 hour', next_sweep_at = now() - interval '1 hour' WHERE thread = {QUIET}""",
    "agent.message_is_taken": f"""INSERT INTO public.agent_staff_message (id, thread, number, author, text, sent_at)
        VALUES (gen_random_uuid(), {QUIET}, 99, 7, 'Hello?', now() - interval '1 hour');
        UPDATE public.agent_thread SET next_sweep_at = now() - interval '1 hour'""",
    "agent.silent_while_person_answers": f"""UPDATE public.agent_thread SET stepped_in_by = 7, stepped_in_at = '2000-01-01'
        WHERE thread = {QUIET}""",
    "agent.finished_has_no_open_step": f"""INSERT INTO public.ledger_attempt (id, thread, ai_message_id, generation, subject,
        on_behalf_of, fence, calls, model, prompt_version) SELECT gen_random_uuid(), thread, 'ai:none', generation, subject,
        on_behalf_of, fence, calls, model, prompt_version FROM public.ledger_attempt WHERE id = {LOOKED_UP}""",
    "agent.outcome_is_told": "DELETE FROM public.agent_notice WHERE kind = 'payment_rejected'",
    "agent.call_has_one_answer": """DELETE FROM public.agent_transcript_entry WHERE status = 'error' AND text LIKE 'REJECTED%'""",
    "agent.call_id_is_used_once": f"""UPDATE public.agent_transcript_entry SET tool_call_id = 'x'
        WHERE thread = {WAITS} AND role = 'tool'""",
    "agent.success_was_executed": f"""UPDATE public.agent_transcript_entry SET status = 'success'
        WHERE thread = {WAITS} AND role = 'tool' AND tool_call_id = 'x'""",
    "agent.execution_was_told": """UPDATE public.agent_transcript_entry SET status = 'error'
        WHERE message_id = (SELECT ai_message_id || ':0' FROM public.ledger_execution WHERE tool = 'LookUpCustomer')""",
    "agent.failure_as_recorded": f"""
        UPDATE public.ledger_batch_abort SET told = jsonb_set(told, '{{0,text}}', '"x"') WHERE attempt_id = {FAILED};
        UPDATE public.ledger_attempt_outcome SET told = jsonb_set(told, '{{0,text}}', '"x"') WHERE attempt_id = {FAILED}""",
    "agent.message_was_read": f"UPDATE public.agent_staff_message SET text = 'Something else' WHERE thread = {QUIET}",
    "agent.thread_has_conversation": "INSERT INTO public.agent_thread (thread) VALUES (gen_random_uuid())",
    "agent.transcript_is_the_memory": """UPDATE public.agent_transcript_entry SET text = 'Nothing was done.'
        WHERE role = 'ai' AND text = 'Voided.'""",
}
BREAKS = MONEY | LEDGER | THREADS
ALSO = {
    "billing.customer_of_parent": {"billing.refund_stands_as_its_message"},
    "billing.refund_stands_as_its_message": {"billing.refund_is_credited_once"},
    "billing.invoice_paid_once": {"billing.invoice_stands_as_its_charge"},
    "ledger.step_ran_in_one_attempt": {"ledger.execution_was_committed"},
    "ledger.no_execution_after_abort": {"ledger.told_is_recorded"},
    "ledger.undone_left_nothing": {"ledger.change_has_cause"},
    "agent.call_has_one_answer": {"agent.transcript_is_the_memory"},
    "agent.call_id_is_used_once": {"agent.transcript_is_the_memory"},
    "agent.success_was_executed": {"agent.transcript_is_the_memory"},
    "agent.execution_was_told": {"agent.transcript_is_the_memory", "agent.failure_as_recorded"},
}
