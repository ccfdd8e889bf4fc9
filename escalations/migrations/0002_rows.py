"""What was proposed, signed and decided is append-only; the requester is carried into signature and decision."""

from django.db import migrations

TABLES = ("escalations_revision", "escalations_signature", "escalations_decision", "escalations_act")
CARRIED = TABLES[:3]
REQUESTED = TABLES[1:3]
# An edit only lowers when its author says so and the rows agree: the same calls or fewer, and in them nothing differs from
# what the agent proposed but amounts (`…_minor`, as everywhere), each of them downwards.
CARRY_REVISION = """
CREATE FUNCTION public.escalations_carry_revision() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.lowers := NEW.lowers AND NEW.number > 0 AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(NEW.calls) AS changed (call)
        LEFT JOIN (SELECT element.call FROM public.escalations_revision r, jsonb_array_elements(r.calls) AS element (call)
                   WHERE r.escalation_id = NEW.escalation_id AND r.number = 0) AS proposed
            ON proposed.call - 'arguments' = changed.call - 'arguments'
        WHERE proposed.call IS NULL OR EXISTS (
            SELECT FROM jsonb_each(nullif(changed.call -> 'arguments', 'null')) AS wanted
            FULL JOIN jsonb_each(nullif(proposed.call -> 'arguments', 'null')) AS given USING (key)
            WHERE wanted.value IS DISTINCT FROM given.value AND (key LIKE '%\\_minor' AND wanted.value < given.value
                AND jsonb_typeof(wanted.value) = 'number' AND jsonb_typeof(given.value) = 'number') IS NOT TRUE));
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION public.escalations_carry_revision() FROM PUBLIC;
"""
# Whoever writes a signature or a decision cannot leave out who asked, sign what is not the newest, or say how many have
# signed: four eyes would see nothing then. The escalation is locked, so that nothing newer comes in between.
CARRY = """
CREATE FUNCTION public.escalations_carry_signature() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE question record; earlier record;
BEGIN
    SELECT requested_by, thread, follows_id INTO question
        FROM public.escalations_escalation WHERE id = NEW.escalation_id FOR UPDATE;
    NEW.requested_by := question.requested_by;
    NEW.asked := EXISTS (SELECT FROM public.agent_staff_message m
                         WHERE m.thread = question.thread AND m.author = NEW.reviewer AND m.state = 'taken');
    -- What the agent proposes on a reviewer's answer, before staff have written again, is that reviewer's.
    NEW.answered := EXISTS (SELECT FROM public.escalations_decision d
                            JOIN public.escalations_escalation a ON a.id = d.escalation_id
                            WHERE a.thread = question.thread AND d.kind = 'answer' AND d.decided_by = NEW.reviewer
                              AND NOT EXISTS (SELECT FROM public.agent_staff_message m WHERE m.thread = a.thread
                                              AND m.state = 'taken' AND m.taken_at > d.decided_at));
    SELECT r.author, r.lowers INTO NEW.editor, NEW.lowers FROM public.escalations_revision r
        WHERE r.id = NEW.revision_id AND r.escalation_id = NEW.escalation_id AND NOT EXISTS (
            SELECT FROM public.escalations_revision newer
            WHERE newer.escalation_id = r.escalation_id AND newer.number > r.number);
    -- The agent's own calls, put back as they were, are nobody's edit any more.
    IF EXISTS (SELECT FROM public.escalations_revision r JOIN public.escalations_revision own
                   ON own.escalation_id = r.escalation_id AND own.number = 0 AND own.calls = r.calls
               WHERE r.id = NEW.revision_id AND NOT r.as_person) THEN
        NEW.editor := NULL;
    END IF;
    -- What was approved as edited and is proposed again, since it did not run, is still its editor's: lowering what one has
    -- raised oneself is not lowering what the agent proposed.
    IF NEW.lowers IS NOT NULL AND question.follows_id IS NOT NULL THEN
        SELECT s.editor, s.lowers INTO earlier FROM public.escalations_decision d
            JOIN public.escalations_signature s ON s.revision_id = d.revision_id
            WHERE d.escalation_id = question.follows_id ORDER BY s.id DESC LIMIT 1;
        IF NEW.editor IS NULL THEN
            NEW.editor := earlier.editor;
            NEW.lowers := coalesce(earlier.lowers, false);
        ELSIF NEW.editor = earlier.editor THEN
            NEW.lowers := NEW.lowers AND earlier.lowers;
        END IF;
    END IF;
    NEW.allowed := (SELECT p.allowed FROM public.escalations_preview p
                    WHERE p.id = NEW.preview_id AND p.revision_id = NEW.revision_id AND p.outcome = 'clean' AND NOT EXISTS (
                        SELECT FROM public.escalations_preview newer
                        WHERE newer.revision_id = p.revision_id AND newer.id > p.id));
    RETURN NEW;
END $$;
CREATE FUNCTION public.escalations_carry_decision() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.requested_by := (SELECT requested_by FROM public.escalations_escalation WHERE id = NEW.escalation_id FOR UPDATE);
    -- What was put right by hand has no preview: whoever decides says how many are needed, and who signed before are acts.
    IF NEW.kind = 'compensate' THEN
        NEW.signed := 1 + (SELECT count(DISTINCT a.by) FROM public.escalations_act a
                           WHERE a.escalation_id = NEW.escalation_id AND a.kind = 'signed' AND a.detail ->> 'exit' = NEW.kind
                             AND a.by <> NEW.decided_by AND a.by IS DISTINCT FROM NEW.requested_by);
        RETURN NEW;
    END IF;
    NEW.needs := (SELECT p.needs FROM public.escalations_preview p JOIN public.escalations_revision r ON r.id = p.revision_id
                  WHERE p.id = NEW.preview_id AND r.id = NEW.revision_id AND r.escalation_id = NEW.escalation_id
                    AND r.as_person = (NEW.kind = 'take_over')
                    AND NOT EXISTS (SELECT FROM public.escalations_preview newer
                                    WHERE newer.revision_id = p.revision_id AND newer.id > p.id)
                    AND NOT EXISTS (SELECT FROM public.escalations_revision newer
                                    WHERE newer.escalation_id = r.escalation_id AND newer.number > r.number));
    NEW.signed := (SELECT CASE WHEN bool_or(s.reviewer = NEW.decided_by) THEN count(DISTINCT s.reviewer) ELSE 0 END
                   FROM public.escalations_signature s
                   JOIN public.escalations_preview p ON p.id = s.preview_id
                   JOIN public.escalations_preview shown ON shown.id = NEW.preview_id
                       AND shown.digest = p.digest AND shown.verdicts = p.verdicts
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
# What the inbox's search looks for words in. Only so much of it: text that is too long for its index would keep an
# escalation from being opened.
WORDS = """
ALTER TABLE public.escalations_escalation ADD COLUMN words tsvector GENERATED ALWAYS AS (to_tsvector('pg_catalog.simple', left(
    coalesce(payload ->> 'about', '') || ' ' || coalesce(payload ->> 'question', '') || ' ' || coalesce(payload ->> 'reason', '')
    || ' ' || coalesce(payload ->> 'staff_message', '') || ' '
    || coalesce(jsonb_path_query_array(payload, '$.calls[*].proposed')::text, '') || ' '
    || coalesce(jsonb_path_query_array(payload, '$.calls[*].arguments.*')::text, ''), 50000))) STORED;
CREATE INDEX escalations_words ON public.escalations_escalation USING gin (words) WITH (fastupdate = off);
"""
# What a scan found is in its questions; when it looked is told for a while, and goes.
PRUNING = """
CREATE FUNCTION public.escalations_prune_scans(finished_before timestamptz, most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone integer;
BEGIN
    IF finished_before > now() - interval '30 days' THEN
        RAISE EXCEPTION 'what is younger than 30 days is kept' USING ERRCODE = 'insufficient_privilege';
    END IF;
    DELETE FROM public.escalations_scan WHERE id IN (
        SELECT s.id FROM public.escalations_scan s WHERE s.finished_at < finished_before ORDER BY s.id LIMIT most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;
REVOKE ALL ON FUNCTION public.escalations_prune_scans(timestamptz, integer) FROM PUBLIC;
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
                for table in REQUESTED
            ),
            "".join(f"ALTER TABLE public.{table} DROP CONSTRAINT {table}_requester;" for table in REQUESTED),
        ),
        migrations.RunSQL(
            CARRY_REVISION + CARRY,
            "".join(f"DROP FUNCTION public.{table.replace('_', '_carry_')}();" for table in CARRIED),
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
        migrations.RunSQL(PRUNING, "DROP FUNCTION public.escalations_prune_scans(timestamptz, integer)"),
        migrations.RunSQL(WORDS, "ALTER TABLE public.escalations_escalation DROP COLUMN words"),
    ]
