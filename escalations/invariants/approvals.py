"""What must be true of what is proposed, previewed and signed: four eyes, on the newest, and enough of them."""

from ledger.invariants import Invariant

# Everybody whose message the agent had taken by then has asked, and whoever answered the agent since. What a signature carries
# is what the other rows say, or stricter; an edit that was approved, did not run and is asked again stays its editor's; the
# agent's own calls, put back, are nobody's edit.
FOUR_EYES = """
SELECT s.id AS signature_id, s.escalation_id, s.reviewer, e.requested_by, r.author AS editor, s.lowers, s.allowed
FROM public.escalations_signature s
JOIN public.escalations_escalation e ON e.id = s.escalation_id
JOIN public.escalations_revision r ON r.id = s.revision_id
JOIN public.escalations_revision own ON own.escalation_id = e.id AND own.number = 0
JOIN public.escalations_preview p ON p.id = s.preview_id
WHERE s.reviewer = e.requested_by OR s.asked OR s.answered OR s.requested_by IS DISTINCT FROM e.requested_by
    OR (s.reviewer = s.editor AND NOT (s.lowers AND s.allowed)) OR s.allowed IS DISTINCT FROM p.allowed
    OR (r.author IS NOT NULL AND (r.as_person OR r.calls <> own.calls)
        AND (s.editor IS DISTINCT FROM r.author OR s.lowers AND NOT r.lowers))
    OR EXISTS (SELECT FROM public.agent_staff_message m WHERE m.thread = e.thread AND m.author = s.reviewer
               AND m.state = 'taken' AND m.taken_at < s.signed_at)
    OR EXISTS (SELECT FROM public.escalations_decision d
               JOIN public.escalations_escalation a ON a.id = d.escalation_id AND a.thread = e.thread
               WHERE d.kind = 'answer' AND d.decided_by = s.reviewer AND d.decided_at < e.opened_at
                 AND NOT EXISTS (SELECT FROM public.agent_staff_message m WHERE m.thread = e.thread AND m.state = 'taken'
                                 AND m.taken_at > d.decided_at AND m.taken_at < s.signed_at))
"""
# Those count together who saw the same effects, held for the same reasons.
SIGNED = """
SELECT d.id AS decision_id, d.escalation_id, d.kind, d.decided_by, d.needs, d.signed, r.number AS revision, p.id AS preview_id
FROM public.escalations_decision d
LEFT JOIN public.escalations_revision r ON r.id = d.revision_id AND r.escalation_id = d.escalation_id
LEFT JOIN public.escalations_preview p ON p.id = d.preview_id AND p.revision_id = r.id AND p.outcome = 'clean'
WHERE CASE WHEN d.kind NOT IN ('approve', 'take_over') THEN d.revision_id IS NOT NULL OR d.preview_id IS NOT NULL
    ELSE p.id IS NULL OR r.as_person <> (d.kind = 'take_over') OR d.needs IS DISTINCT FROM p.needs
        OR NOT EXISTS (SELECT FROM public.escalations_signature s WHERE s.preview_id = p.id AND s.reviewer = d.decided_by)
        OR p.needs > (SELECT count(DISTINCT s.reviewer) FROM public.escalations_signature s
                      JOIN public.escalations_preview seen ON seen.id = s.preview_id AND seen.revision_id = s.revision_id
                      WHERE s.revision_id = r.id AND s.escalation_id = d.escalation_id
                        AND seen.digest = p.digest AND seen.verdicts = p.verdicts) END
"""
NEWEST = """
SELECT d.id AS decision_id, d.escalation_id, d.revision_id, d.preview_id, newer.id AS newer_revision, again.id AS newer_preview
FROM public.escalations_decision d
JOIN public.escalations_revision r ON r.id = d.revision_id
LEFT JOIN public.escalations_revision newer ON newer.escalation_id = d.escalation_id AND newer.number > r.number
LEFT JOIN public.escalations_preview again ON again.revision_id = r.id AND again.id > d.preview_id
WHERE newer.id IS NOT NULL OR again.id IS NOT NULL
"""
WAIVED = """
SELECT d.id AS decision_id, d.escalation_id, d.waived, p.verdicts AS shown FROM public.escalations_decision d
LEFT JOIN public.escalations_preview p ON p.id = d.preview_id
WHERE d.waived <> coalesce((
    SELECT jsonb_agg(jsonb_build_object('call_index', verdict -> 'call_index', 'rule', verdict -> 'rule',
                                        'measured', verdict -> 'measured') ORDER BY place)
    FROM jsonb_array_elements(p.verdicts) WITH ORDINALITY AS shown (verdict, place) WHERE verdict ->> 'action' = 'hold'), '[]')
"""
PROPOSED = """
SELECT e.id AS escalation_id, e.kind, r.id AS revision_id FROM public.escalations_escalation e
LEFT JOIN public.escalations_revision r ON r.escalation_id = e.id AND r.number = 0
WHERE (r.id IS NULL AND e.kind = 'approval') OR (r.id IS NOT NULL AND r.calls IS DISTINCT FROM (
    SELECT jsonb_agg(jsonb_build_object('index', call -> 'index', 'id', call -> 'id', 'tool', call -> 'tool',
                                        'arguments', call -> 'arguments') ORDER BY place)
    FROM jsonb_array_elements(e.payload -> 'calls') WITH ORDINALITY AS asked (call, place)))
"""
# A person changes arguments and drops calls; what is called, and in which order, stays the agent's.
FOLLOWS = """
SELECT r.id AS revision_id, r.escalation_id, r.number, r.author FROM public.escalations_revision r
LEFT JOIN public.escalations_revision before ON before.escalation_id = r.escalation_id AND before.number = r.number - 1
LEFT JOIN public.escalations_revision first ON first.escalation_id = r.escalation_id AND first.number = 0
WHERE r.number > 0 AND (before.id IS NULL OR first.id IS NULL OR r.calls = '[]' OR EXISTS (
    SELECT FROM jsonb_array_elements(r.calls) AS call WHERE NOT first.calls @> jsonb_build_array(call - 'arguments')))
"""
LOWERS = """
SELECT r.id AS revision_id, r.escalation_id, r.number, changed.argument, changed.was, changed.becomes
FROM public.escalations_revision r
LEFT JOIN LATERAL (
    SELECT differs.* FROM public.escalations_revision first
    CROSS JOIN jsonb_array_elements(first.calls) AS old (call)
    JOIN jsonb_array_elements(r.calls) AS new (call) ON new.call -> 'index' = old.call -> 'index'
    CROSS JOIN LATERAL (
        SELECT key AS argument, given.value AS was, wanted.value AS becomes
        FROM jsonb_each(nullif(old.call -> 'arguments', 'null')) AS given
        FULL JOIN jsonb_each(nullif(new.call -> 'arguments', 'null')) AS wanted USING (key)) AS differs
    WHERE first.escalation_id = r.escalation_id AND first.number = 0 AND differs.was IS DISTINCT FROM differs.becomes
      AND (differs.argument LIKE '%%\\_minor' AND differs.becomes < differs.was) IS NOT TRUE) AS changed ON true
WHERE r.lowers AND (r.number = 0 OR changed.argument IS NOT NULL)
"""

INVARIANTS = (
    Invariant(
        name="escalations.four_eyes",
        guarantee=8,
        says="Nobody signed what they, or words of theirs in that conversation, had asked for; an editor signed only what"
        " lowers amounts and what the limits allow.",
        query=FOUR_EYES,
    ),
    Invariant(
        name="escalations.approval_is_signed",
        guarantee=8,
        says="An approval is signed by whoever decided it, and by as many people as it needs, who all saw the same.",
        query=SIGNED,
    ),
    Invariant(
        name="escalations.newest_was_decided",
        guarantee=8,
        says="What was approved is the newest version of the proposal, as its newest preview showed it.",
        query=NEWEST,
    ),
    Invariant(
        name="escalations.waived_what_was_shown",
        guarantee=8,
        says="An approval waives exactly the limits that were shown, at the amounts that were shown; nothing else waives any.",
        query=WAIVED,
    ),
    Invariant(
        name="escalations.proposal_is_kept",
        guarantee=8,
        says="Every question about calls keeps them as it was asked with them.",
        query=PROPOSED,
    ),
    Invariant(
        name="escalations.edits_follow",
        guarantee=8,
        says="Versions of a proposal are counted without a gap, and have no call that is not the agent's.",
        query=FOLLOWS,
    ),
    Invariant(
        name="escalations.edits_lower_as_they_say",
        guarantee=8,
        says="An edit that says that it only lowers changes nothing but amounts, each of them downwards.",
        query=LOWERS,
    ),
)
