-- What each database login may do. Applied as the owner after every migration; running it again changes nothing.
-- Everything not said here is refused. docs/grants.md shows the same as a table, from the catalogue.

-- Nobody but the owner until said below.
DO $$
DECLARE item record;
BEGIN
    FOR item IN SELECT c.oid::regclass AS name, c.relkind FROM pg_class c
                WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S', 'v') LOOP
        EXECUTE format('REVOKE ALL ON %s %s FROM PUBLIC, backstop_web, backstop_agent, backstop_outbox, backstop_keeper',
                       CASE item.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, item.name);
    END LOOP;
    FOR item IN SELECT table_name, column_name, grantee FROM information_schema.column_privileges
                WHERE table_schema = 'public' AND grantee LIKE 'backstop\_%' AND grantee <> 'backstop_owner'
                GROUP BY 1, 2, 3 LOOP
        EXECUTE format('REVOKE ALL (%I) ON public.%I FROM %I', item.column_name, item.table_name, item.grantee);
    END LOOP;
END $$;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO backstop_web, backstop_agent, backstop_outbox, backstop_keeper;

-- Evidence, ledger, outbox, escalations: everyone who works reads them.
GRANT SELECT ON
    public.ledger_attempt, public.ledger_attempt_outcome, public.ledger_execution, public.ledger_batch_abort,
    public.ledger_row_change, public.outbox_message, public.outbox_delivery, public.outbox_request,
    public.outbox_destination, public.outbox_send_after, public.outbox_rate,
    public.escalations_escalation, public.escalations_revision, public.escalations_preview, public.escalations_signature,
    public.escalations_decision, public.escalations_act, public.escalations_presence, public.escalations_scan,
    public.billing_customer, public.billing_credit_account, public.billing_invoice, public.billing_payment,
    public.billing_refund, public.billing_refund_reversal, public.billing_credit_memo, public.billing_credit_entry,
    public.agent_conversation, public.agent_thread, public.agent_staff_message, public.agent_notice,
    public.agent_feed, public.agent_event, public.agent_policy, public.agent_policy_request,
    public.django_migrations
TO backstop_web, backstop_agent, backstop_outbox, backstop_keeper;
GRANT EXECUTE ON FUNCTION public.ledger_record_change() TO backstop_agent, backstop_outbox;

-- web: people, conversations, decisions; no money, no ledger, no checkpoint.
GRANT SELECT, INSERT, UPDATE, DELETE ON
    public.auth_user, public.auth_user_groups, public.auth_user_user_permissions, public.django_session,
    public.axes_accessattempt, public.axes_accessattemptexpiration, public.axes_accessfailurelog, public.axes_accesslog
TO backstop_web;
GRANT SELECT ON public.auth_group, public.auth_group_permissions, public.auth_permission, public.django_content_type TO backstop_web;
GRANT SELECT ON public.agent_transcript_entry, public.agent_draft, public.agent_window, public.outbox_webhook_event TO backstop_web;
GRANT INSERT (thread, subject, created_by_id, created_at) ON public.agent_conversation TO backstop_web;
GRANT INSERT (thread), UPDATE (stop_requested_at, stop_requested_by, stepped_in_by, stepped_in_at, next_sweep_at)
    ON public.agent_thread TO backstop_web;
GRANT INSERT, UPDATE (text, state) ON public.agent_staff_message TO backstop_web;
GRANT INSERT ON public.agent_notice, public.agent_event, public.agent_policy TO backstop_web;
GRANT INSERT (rule, tool, currency, value, reason, asked_by), UPDATE (ended_at, ended_by, outcome)
    ON public.agent_policy_request TO backstop_web;
GRANT INSERT, UPDATE ON public.agent_feed TO backstop_web;
GRANT UPDATE (state, claimed_by, claimed_until, snoozed_until, snoozed_by, decided_at, closed_at, due_at)
    ON public.escalations_escalation TO backstop_web;
GRANT INSERT ON public.escalations_revision, public.escalations_signature, public.escalations_decision, public.escalations_act
TO backstop_web;
GRANT INSERT (revision_id, requested_by) ON public.escalations_preview TO backstop_web;  -- asks for one; the agent makes it
GRANT INSERT, UPDATE, DELETE ON public.escalations_presence TO backstop_web;
GRANT INSERT (asked_by, escalation) ON public.escalations_scan TO backstop_web;  -- asks for one; the outbox worker looks
GRANT INSERT ON public.outbox_request, public.outbox_webhook_event, public.outbox_send_after, public.outbox_rate TO backstop_web;
GRANT INSERT ON public.outbox_message TO backstop_web;  -- topics notify.* only: see the policy

-- agent: what tools need, the ledger, checkpoints, its own threads.
GRANT INSERT ON
    public.billing_invoice, public.billing_refund, public.billing_credit_memo, public.billing_credit_entry,
    public.ledger_attempt, public.ledger_attempt_outcome, public.ledger_execution, public.ledger_batch_abort,
    public.outbox_message, public.escalations_escalation, public.escalations_revision, public.escalations_preview,
    public.escalations_decision, public.escalations_act, public.agent_notice, public.agent_event
TO backstop_agent;
GRANT UPDATE (made_at, outcome, policy_version, verdicts, allowed, needs, digest, changes, messages, results, failure, duration_ms)
    ON public.escalations_preview TO backstop_agent;
GRANT UPDATE (amount_due_minor, credited_minor, status, charge_attempt, paid_at) ON public.billing_invoice TO backstop_agent;
GRANT UPDATE (balance_minor, entries) ON public.billing_credit_account TO backstop_agent;
GRANT UPDATE (refunded_minor) ON public.billing_payment TO backstop_agent;
GRANT UPDATE (state, decided_at, resumed_at, closed_at) ON public.escalations_escalation TO backstop_agent;
GRANT SELECT, INSERT, UPDATE ON public.agent_thread, public.agent_transcript_entry, public.agent_window, public.agent_feed TO backstop_agent;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.agent_draft TO backstop_agent;
GRANT UPDATE (state, taken_at) ON public.agent_staff_message TO backstop_agent;
GRANT UPDATE (told_in) ON public.agent_notice TO backstop_agent;
GRANT SELECT (id, username, is_active) ON public.auth_user TO backstop_agent;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.checkpoints, public.checkpoint_blobs, public.checkpoint_writes TO backstop_agent;
GRANT SELECT ON public.checkpoint_migrations TO backstop_agent;
GRANT EXECUTE ON FUNCTION public.agent_fence(uuid, bigint), public.billing_check_credit_balance(),
    public.agent_window_add(text[], date[], text[], bigint[], bigint[]) TO backstop_agent;

-- outbox: delivery, and the effect of an outcome on the customer it belongs to.
GRANT UPDATE (state, step, provider_id, provider_status, refusal, last_error, outcome_source, attempts, sends, spared, ever_unknown,
    compensation_needed, next_attempt_at, give_up_at, claimed_from, lease_token, lease_owner, leased_until, sending_at,
    first_sent_at, key_deadline, key_generation, finished_at, blocked, undo_until, seen)
    ON public.outbox_message TO backstop_outbox;  -- not what is sent
GRANT INSERT, UPDATE ON public.outbox_destination TO backstop_outbox;
GRANT UPDATE (processed_at, outcome, attempts) ON public.outbox_webhook_event TO backstop_outbox;
GRANT SELECT ON public.outbox_webhook_event TO backstop_outbox;
GRANT INSERT ON public.outbox_message, public.outbox_delivery, public.billing_payment, public.billing_credit_entry,
    public.escalations_escalation, public.agent_notice, public.agent_event TO backstop_outbox;
GRANT INSERT ON public.billing_refund, public.billing_refund_reversal TO backstop_outbox;  -- what is not owed, what came back
GRANT INSERT ON public.escalations_act TO backstop_outbox;  -- that reviewers were told
GRANT INSERT ON public.escalations_decision TO backstop_outbox;  -- that a disagreement is gone: see the policy
GRANT UPDATE (state, decided_at, resumed_at, closed_at) ON public.escalations_escalation TO backstop_outbox;
GRANT INSERT, UPDATE ON public.escalations_scan TO backstop_outbox;
GRANT SELECT ON public.agent_transcript_entry TO backstop_outbox;  -- what a scan compares the ledger with
GRANT SELECT (id, username, is_active) ON public.auth_user TO backstop_outbox;
GRANT UPDATE (carried_out_at, outcome) ON public.outbox_request TO backstop_outbox;
GRANT UPDATE (status, amount_due_minor, paid_at) ON public.billing_invoice TO backstop_outbox;
GRANT UPDATE (balance_minor, entries) ON public.billing_credit_account TO backstop_outbox;
GRANT UPDATE (refunded_minor, stray) ON public.billing_payment TO backstop_outbox;
GRANT UPDATE (status, provider_refund_id, provider_credit_note_id, settled_at) ON public.billing_refund TO backstop_outbox;
GRANT UPDATE (provider_customer_id, provider_payment_method, card_last4) ON public.billing_customer TO backstop_outbox;
GRANT INSERT, UPDATE ON public.agent_feed TO backstop_outbox;
GRANT EXECUTE ON FUNCTION public.billing_check_credit_balance() TO backstop_outbox;

-- keeper: reads everything but people's passwords, makes partitions, moves no money.
GRANT SELECT ON public.agent_transcript_entry, public.agent_draft, public.agent_window, public.outbox_webhook_event,
    public.checkpoints, public.checkpoint_blobs, public.checkpoint_writes TO backstop_keeper;
GRANT SELECT (id, username, is_active) ON public.auth_user TO backstop_keeper;
GRANT SELECT ON public.auth_group, public.auth_user_groups TO backstop_keeper;  -- who may decide
GRANT SELECT ON public.ledger_row_change_default, public.outbox_delivery_default, public.agent_event_default TO backstop_keeper;
GRANT EXECUTE ON FUNCTION public.ledger_make_partitions(integer), public.outbox_prune(bigint[], timestamptz),
    public.outbox_prune_events(timestamptz, integer), public.escalations_prune_scans(timestamptz, integer) TO backstop_keeper;

-- Row-level security: a conversation acts on its own customer only. `backstop.subject` is transaction-local.
DO $$
DECLARE
    item record;
    subject constant text := $q$nullif(current_setting('backstop.subject', true), '')::bigint$q$;
BEGIN
    FOR item IN SELECT * FROM (VALUES
        ('billing_customer', 'id'), ('billing_credit_account', 'customer_id'), ('billing_invoice', 'customer_id'),
        ('billing_payment', 'customer_id'), ('billing_refund', 'customer_id'), ('billing_credit_memo', 'customer_id'),
        ('billing_refund_reversal', 'customer_id'), ('billing_credit_entry', 'customer_id'), ('ledger_row_change', 'subject'), ('outbox_message', 'subject')
    ) AS t (name, key) LOOP
        EXECUTE format('ALTER TABLE public.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', item.name);
        EXECUTE format('DROP POLICY IF EXISTS owner_all ON public.%1$I; DROP POLICY IF EXISTS read_all ON public.%1$I;
                        DROP POLICY IF EXISTS agent_subject ON public.%1$I; DROP POLICY IF EXISTS outbox_subject ON public.%1$I;
                        DROP POLICY IF EXISTS outbox_all ON public.%1$I; DROP POLICY IF EXISTS notify ON public.%1$I', item.name);
        EXECUTE format('CREATE POLICY owner_all ON public.%I TO backstop_owner USING (true) WITH CHECK (true)', item.name);
        EXECUTE format('CREATE POLICY read_all ON public.%I FOR SELECT TO backstop_web, backstop_outbox, backstop_keeper USING (true)', item.name);
        EXECUTE format('CREATE POLICY agent_subject ON public.%I TO backstop_agent USING (%I = %s) WITH CHECK (%2$I = %3$s)',
                       item.name, item.key, subject);
        IF item.name = 'outbox_message' THEN
            CREATE POLICY outbox_all ON public.outbox_message TO backstop_outbox USING (true) WITH CHECK (true);
            CREATE POLICY notify ON public.outbox_message TO backstop_web, backstop_agent
                USING (topic LIKE 'notify.%') WITH CHECK (topic LIKE 'notify.%');
        ELSE
            EXECUTE format('CREATE POLICY outbox_subject ON public.%I TO backstop_outbox USING (%I = %s) WITH CHECK (%2$I = %3$s)',
                           item.name, item.key, subject);
        END IF;
    END LOOP;
END $$;

-- People decide on pages; workers only say that nobody did in time, or that nobody has to any more.
ALTER TABLE public.escalations_decision ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS owner_all ON public.escalations_decision;
DROP POLICY IF EXISTS read_all ON public.escalations_decision;
DROP POLICY IF EXISTS web_people ON public.escalations_decision;
DROP POLICY IF EXISTS agent_system ON public.escalations_decision;
DROP POLICY IF EXISTS outbox_system ON public.escalations_decision;
CREATE POLICY owner_all ON public.escalations_decision TO backstop_owner USING (true) WITH CHECK (true);
CREATE POLICY read_all ON public.escalations_decision FOR SELECT
    TO backstop_web, backstop_agent, backstop_outbox, backstop_keeper USING (true);
CREATE POLICY web_people ON public.escalations_decision FOR INSERT TO backstop_web WITH CHECK (decided_by IS NOT NULL);
CREATE POLICY agent_system ON public.escalations_decision FOR INSERT TO backstop_agent
    WITH CHECK (kind IN ('expire', 'settle') AND decided_by IS NULL);
CREATE POLICY outbox_system ON public.escalations_decision FOR INSERT TO backstop_outbox
    WITH CHECK (kind = 'settle' AND decided_by IS NULL);

-- Pages edit in a person's name; only the agent's worker says what the agent itself proposed.
ALTER TABLE public.escalations_revision ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS owner_all ON public.escalations_revision;
DROP POLICY IF EXISTS read_all ON public.escalations_revision;
DROP POLICY IF EXISTS web_edits ON public.escalations_revision;
DROP POLICY IF EXISTS agent_proposes ON public.escalations_revision;
CREATE POLICY owner_all ON public.escalations_revision TO backstop_owner USING (true) WITH CHECK (true);
CREATE POLICY read_all ON public.escalations_revision FOR SELECT
    TO backstop_web, backstop_agent, backstop_outbox, backstop_keeper USING (true);
CREATE POLICY web_edits ON public.escalations_revision FOR INSERT TO backstop_web WITH CHECK (author IS NOT NULL);
CREATE POLICY agent_proposes ON public.escalations_revision FOR INSERT TO backstop_agent WITH CHECK (author IS NULL);

-- A staff message is its author's until the agent takes it; from then on it is what the agent read. web writes and withdraws
-- what waits, the agent takes it, and nobody changes it afterwards.
ALTER TABLE public.agent_staff_message ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS owner_all ON public.agent_staff_message;
DROP POLICY IF EXISTS read_all ON public.agent_staff_message;
DROP POLICY IF EXISTS web_writes ON public.agent_staff_message;
DROP POLICY IF EXISTS web_changes ON public.agent_staff_message;
DROP POLICY IF EXISTS agent_takes ON public.agent_staff_message;
CREATE POLICY owner_all ON public.agent_staff_message TO backstop_owner USING (true) WITH CHECK (true);
CREATE POLICY read_all ON public.agent_staff_message FOR SELECT
    TO backstop_web, backstop_agent, backstop_outbox, backstop_keeper USING (true);
CREATE POLICY web_writes ON public.agent_staff_message FOR INSERT TO backstop_web WITH CHECK (state = 'queued' AND taken_at IS NULL);
CREATE POLICY web_changes ON public.agent_staff_message FOR UPDATE TO backstop_web
    USING (state = 'queued') WITH CHECK (state IN ('queued', 'cancelled'));
CREATE POLICY agent_takes ON public.agent_staff_message FOR UPDATE TO backstop_agent
    USING (state = 'queued') WITH CHECK (state = 'taken');
