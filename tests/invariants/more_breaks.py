"""The same for messages, questions and the database itself."""

from tests.invariants.breaks import APPROVED, QUIET, REFUSED, WAITS, WITHDRAWN

MESSAGE = """INSERT INTO public.outbox_message (topic, destination, aggregate, dedupe_key, payload, steps, repeat, state, thread,
    ai_message_id, call_index, first_sent_at, next_attempt_at, lease_token, leased_until, claimed_from)
    VALUES ('notify.email', 'mail', '{aggregate}', {key}, '{{}}', '[]', 'harmless', '{state}', {thread}, {step}, {call}, {sent},
    now() - interval '1 hour', {token}, {until}, {source})"""


def message(state: str = "accepted", **changes: str) -> str:
    """Return the insertion of a message that no call caused."""
    values = {
        "aggregate": "x:1",
        "key": "gen_random_uuid()::text",
        "thread": "NULL",
        "step": "NULL",
        "call": "NULL",
        "sent": "NULL",
    }
    leased = {"token": "gen_random_uuid()", "until": "now() + interval '1 hour'", "source": "'ready'"}
    lease = leased if state == "leased" else dict.fromkeys(leased, "NULL")
    return MESSAGE.format(**(values | lease | changes), state=state)


def delivery(message: str, *, step: str = "lookup", outcome: str = "uncertain", at: str = "now()") -> str:
    """Return the insertion of a delivery."""
    return f"""INSERT INTO public.outbox_delivery (message_id, step, outcome, started_at, duration_ms)
        VALUES ({message}, '{step}', '{outcome}', {at}, 1)"""


def question(thing: str) -> str:
    """Return the insertion of an open question."""
    return f"""INSERT INTO public.escalations_escalation (kind, object, payload) VALUES ('dirty_state', '{thing}', '{{}}')"""


SENT_BACK = "(SELECT id FROM public.outbox_message WHERE topic = 'payment.refund')"


def ended(thing: str, *, kind: str, by: str, state: str) -> str:
    """Return the insertion of a question that would not expire yet, and was decided so."""
    return f"""WITH asked AS (INSERT INTO public.escalations_escalation
            (kind, object, payload, state, requested_by, expires_at, decided_at, closed_at)
            VALUES ('asked', '{thing}', '{{}}', '{state}', 7, now() + interval '1 day', now(), now()) RETURNING id)
        INSERT INTO public.escalations_decision (escalation_id, kind, text, waived, decided_by)
        SELECT id, '{kind}', '', '[]', {by} FROM asked"""


def settled(kind: str, *, state: str = "done", signed: str = "NULL") -> str:
    """Return the insertion of a disagreement about a message that a reviewer settled an hour ago, which nobody else knows of."""
    closed = "now()" if state == "done" else "NULL"
    return f"""WITH asked AS (INSERT INTO public.escalations_escalation
            (kind, object, payload, state, decided_at, closed_at)
            VALUES ('dirty_state', 'x:9', jsonb_build_object('message_id', {WITHDRAWN}), '{state}',
                now() - interval '1 hour', {closed}) RETURNING id)
        INSERT INTO public.escalations_decision (escalation_id, kind, text, waived, decided_by, needs, signed)
        SELECT id, '{kind}', 'x', '[]', 8, {signed}, {signed} FROM asked"""


EDITED = "(SELECT r.id FROM public.escalations_revision r WHERE r.number = 1 AND NOT r.as_person)"
TAKEN = "(SELECT r.id FROM public.escalations_revision r WHERE r.as_person)"
ANSWERED = "(SELECT escalation_id FROM public.escalations_decision WHERE kind = 'answer')"
OUTBOX = {
    "outbox.message_has_its_call": message(thread=QUIET, step="'ai:none'", call="0"),
    "outbox.success_is_known": "UPDATE public.outbox_message SET outcome_source = NULL WHERE state = 'succeeded'",
    "outbox.one_object_a_message": f"""UPDATE public.outbox_message SET provider_id =
        (SELECT provider_id FROM public.outbox_message WHERE id = {SENT_BACK}) WHERE id = {WITHDRAWN}""",
    "outbox.request_is_frozen": f"""UPDATE public.outbox_message SET steps = jsonb_set(steps, '{{0,key}}', '"x"')
        WHERE id = {WITHDRAWN}""",
    "outbox.key_is_not_too_old": delivery(SENT_BACK, step="refund", at="now() + interval '30 hours'"),
    "outbox.delivery_has_message": delivery("999999"),
    "outbox.outcome_has_evidence": "DELETE FROM public.outbox_delivery WHERE outcome = 'rejected'",
    "outbox.withdrawn_was_never_sent": delivery(WITHDRAWN, step="create"),
    "outbox.undone_in_time_is_withdrawn": f"""UPDATE public.outbox_message SET undo_until = now() + interval '1 day'
        WHERE id = {SENT_BACK}""",
    "outbox.sent_in_order": f"{message()}; {message(sent='now()')}",
    "outbox.one_in_flight": f"""DROP INDEX public.outbox_message_one_in_flight; {message("leased")}; {message("leased")}""",
    "outbox.effect_queued_once": f"""ALTER TABLE public.outbox_message DROP CONSTRAINT outbox_message_once;
        {message(key="'twice'")}; {message(key="'twice'", aggregate="x:2")}""",
    "outbox.settled_message_changed_the_row": """UPDATE public.ledger_row_change SET message_id = 999999
        WHERE id = (SELECT min(id) FROM public.ledger_row_change WHERE message_id =
            (SELECT id FROM public.outbox_message WHERE topic = 'payment.charge' AND state = 'succeeded'))""",
    "outbox.lease_ends": message("leased", until="now() - interval '1 hour'"),
    "outbox.due_is_delivered": message("ready"),
    "outbox.wish_is_carried_out": f"""INSERT INTO public.outbox_request (message_id, kind, reason, requested_by, requested_at)
        VALUES ({WITHDRAWN}, 'cancel', 'x', 7, now() - interval '1 hour')""",
    "outbox.event_is_processed": """INSERT INTO public.outbox_webhook_event (event_id, type, object_id, payload, received_at)
        VALUES ('evt_1', 'refund.updated', 're_1', '{}', now() - interval '2 hours')""",
}
QUESTIONS = {
    "escalations.one_open_question": f"""DROP INDEX public.escalations_escalation_one_open;
        {question("x:1")}; {question("x:1")}""",
    "escalations.closed_by_decision": f"UPDATE public.escalations_escalation SET decided_at = NULL WHERE id = {ANSWERED}",
    "escalations.one_decision": f"""
        ALTER TABLE public.escalations_decision DROP CONSTRAINT escalations_decision_escalation_id_key;
        INSERT INTO public.escalations_decision (escalation_id, kind, text, waived, decided_by, requested_by)
        SELECT escalation_id, kind, text, waived, decided_by, requested_by FROM public.escalations_decision
        WHERE escalation_id = {ANSWERED}""",
    "escalations.ends_as_it_says": f"UPDATE public.escalations_escalation SET closed_at = NULL WHERE id = {ANSWERED}",
    "escalations.four_eyes": f"""INSERT INTO public.agent_staff_message (id, thread, number, author, text, state, taken_at)
        SELECT gen_random_uuid(), thread, 99, 8, 'And this.', 'taken', opened_at FROM public.escalations_escalation
        WHERE id = {APPROVED}""",
    "escalations.decided_by_reviewer": "DELETE FROM public.auth_user_groups WHERE user_id = 8",
    "escalations.withdrawn_by_who_asked": ended("x:2", kind="withdraw", by="9", state="done"),
    "escalations.expired_in_time": ended("x:3", kind="expire", by="NULL", state="expired"),
    "escalations.preview_comes_soon": f"""INSERT INTO public.escalations_preview (revision_id, requested_at)
        SELECT r.id, now() - interval '1 hour' FROM public.escalations_revision r
        JOIN public.escalations_escalation e ON e.id = r.escalation_id WHERE e.state = 'open' AND e.thread = {WAITS}""",
    "escalations.newest_was_decided": f"""INSERT INTO public.escalations_preview (revision_id, requested_at)
        SELECT id, now() FROM public.escalations_revision WHERE escalation_id = {APPROVED}""",
    "escalations.edits_follow": f"UPDATE public.escalations_revision SET number = 3 WHERE id = {EDITED}",
    "escalations.edits_lower_as_they_say": f"""UPDATE public.escalations_revision SET lowers = true WHERE id = {TAKEN};
        UPDATE public.escalations_signature SET lowers = true WHERE revision_id = {TAKEN}""",
    "escalations.ran_as_shown": f"""UPDATE public.escalations_preview SET changes = changes - 0
        WHERE revision_id = {EDITED}""",
    "escalations.taken_over_is_marked": """UPDATE public.ledger_execution SET performed_by = NULL;
        UPDATE public.ledger_attempt SET performed_by = NULL""",
    "escalations.approval_is_signed": "DELETE FROM public.escalations_signature",
    "escalations.waived_what_was_shown": "UPDATE public.escalations_decision SET waived = '[]' WHERE kind = 'approve'",
    "escalations.proposal_is_kept": f"""UPDATE public.escalations_escalation SET payload = payload || '{{"calls": []}}'
        WHERE id = {REFUSED}""",
    "escalations.held_ran_approved": """UPDATE public.escalations_decision SET decided_at = now() + interval '1 hour'
        WHERE kind = 'approve'""",
    "escalations.ran_as_approved": f"""
        UPDATE public.escalations_revision SET calls = jsonb_set(calls, '{{1,arguments,amount_minor}}', '1')
        WHERE escalation_id = {APPROVED};
        UPDATE public.escalations_escalation SET payload = jsonb_set(payload, '{{calls,1,arguments,amount_minor}}', '1')
        WHERE id = {APPROVED}""",
    "escalations.rejected_never_ran": f"""UPDATE public.escalations_escalation SET ai_message_id =
        (SELECT ai_message_id FROM public.escalations_escalation WHERE id = {APPROVED}) WHERE id = {REFUSED}""",
    "escalations.decision_is_taken_up": f"""UPDATE public.escalations_escalation
        SET state = 'decided', decided_at = now() - interval '1 hour', closed_at = NULL WHERE id = {ANSWERED};
        UPDATE public.agent_thread SET state = 'waiting' WHERE thread =
            (SELECT thread FROM public.escalations_escalation WHERE id = {ANSWERED})""",
    "escalations.exit_was_asked_for": settled("adopt"),
    "escalations.exit_comes_to_its_end": settled("replay_thread", state="decided"),
    "escalations.put_right_by_enough": settled("compensate", signed="2"),
    "escalations.trouble_reaches_a_person": "DELETE FROM public.escalations_escalation WHERE kind = 'rejected_payment'",
}
DATABASE = {
    "config.row_security_is_forced": "ALTER TABLE public.billing_invoice NO FORCE ROW LEVEL SECURITY",
    "config.policies_say_what_they_must": "ALTER POLICY agent_subject ON public.billing_invoice USING (true)",
    "config.logins_have_no_powers": "GRANT backstop_owner TO backstop_keeper",
    "config.owner_owns_everything": "ALTER TABLE public.agent_draft OWNER TO CURRENT_USER",
    "config.evidence_cannot_be_changed": """DO $$ BEGIN EXECUTE format('GRANT UPDATE (after) ON %s TO backstop_agent',
        (SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'public.ledger_row_change'::regclass));
        END $$""",
    "config.guards_are_on": """DO $$ BEGIN EXECUTE format('ALTER TABLE %s DISABLE TRIGGER append_only',
        (SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'public.ledger_row_change'::regclass));
        END $$""",
    "config.functions_are_closed": "GRANT EXECUTE ON FUNCTION public.ledger_record_change() TO PUBLIC",
    "config.constraints_hold": "ALTER TABLE public.billing_payment DROP CONSTRAINT billing_payment_refund_cap",
    "config.columns_are_exact": "ALTER TABLE public.agent_window ALTER amount TYPE numeric",
    "config.months_are_made": """DO $$ BEGIN EXECUTE 'DROP TABLE public.agent_event'
        || to_char(timezone('UTC', now()) + interval '1 month', '"_y"YYYY"m"MM'); END $$""",
    "config.default_parts_are_empty": delivery(WITHDRAWN, outcome="retry", at="now() + interval '2 years'"),
    "config.no_secret_in_text": """INSERT INTO public.agent_policy (rule, tool, currency, reason, set_by)
        VALUES ('per_call', '', '', 'They paid with 4242 4242 4242 4242.', 1)""",
}
BREAKS = OUTBOX | QUESTIONS | DATABASE
ALSO = {
    "outbox.one_in_flight": {"config.constraints_hold", "outbox.sent_in_order"},
    "outbox.effect_queued_once": {"config.constraints_hold"},
    "escalations.one_open_question": {"config.constraints_hold"},
    "escalations.four_eyes": {"agent.message_was_read"},
}
