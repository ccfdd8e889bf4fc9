"""Which messages of the outbox questions refer to: of an effect its page shows, and notices of what is still undecided."""

MESSAGES = """
SELECT m.id FROM public.outbox_message m
WHERE m.id = ANY(%(ids)s) AND 'message:' || m.id IN (SELECT e.object FROM public.escalations_escalation e)
UNION ALL
SELECT m.id FROM public.outbox_message m
JOIN public.escalations_escalation e ON e.id = (m.payload ->> 'escalation')::bigint AND e.state IN ('open', 'claimed')
WHERE m.id = ANY(%(ids)s) AND m.topic LIKE 'notify.%%'
UNION ALL
SELECT r.message_id FROM public.outbox_request r WHERE r.message_id = ANY(%(ids)s) AND r.escalation IS NOT NULL
"""
