"""What must be true of messages, of the evidence of their delivery, and of the provider's events."""

from datetime import timedelta

from ledger.invariants import Invariant

SOON = timedelta(minutes=10)  # the relay looks every few seconds, and whatever it holds it gives up within two minutes

HAS_CALL = """
SELECT m.id AS message_id, m.topic, m.thread, m.ai_message_id, m.call_index FROM public.outbox_message m
WHERE m.thread IS NOT NULL AND NOT EXISTS (
        SELECT FROM public.ledger_execution e WHERE e.thread = m.thread AND e.ai_message_id = m.ai_message_id
            AND e.call_index = m.call_index AND e.subject = m.subject)
    OR num_nulls(m.thread, m.ai_message_id, m.call_index) NOT IN (0, 3)
"""
KNOWN = """
SELECT id AS message_id, topic, state, provider_id, sends, first_sent_at, outcome_source FROM public.outbox_message
WHERE state = 'succeeded' AND (provider_id IS NULL AND repeat <> 'harmless'
        OR first_sent_at IS NULL OR sends < 1 OR outcome_source IS NULL)
    OR state IN ('succeeded', 'rejected', 'cancelled') AND finished_at IS NULL
"""
ONE_OBJECT = """
SELECT provider_id, count(*) AS messages, min(id) AS first, max(id) AS last FROM public.outbox_message
WHERE provider_id IS NOT NULL GROUP BY destination, account, provider_id HAVING count(*) > 1
"""
FROZEN = """
SELECT m.id AS message_id, m.step, m.key_generation, one.place - 1 AS of_step, one.request ->> 'key' AS key
FROM public.outbox_message m CROSS JOIN jsonb_array_elements(m.steps) WITH ORDINALITY AS one (request, place)
WHERE one.request ->> 'key' IS DISTINCT FROM m.uid || ':' || (one.request ->> 'name')
    OR m.step NOT BETWEEN 0 AND jsonb_array_length(m.steps) - 1
    OR (m.step > 0 AND m.provider_id IS NULL)
    OR (one.place - 1 = m.step AND m.key_generation > 1 AND NOT (one.request -> 'renewable')::boolean)
"""
# The provider may forget a key after a day: a step that moves money each time must not be sent again by then. A call that
# provably was not executed does not count; what was written about a lost worker is no call.
TOO_LATE = """
SELECT m.id AS message_id, d.step, min(d.started_at) FILTER (WHERE d.outcome NOT IN ('retry', 'park')) AS first,
    max(d.started_at) AS last
FROM public.outbox_message m CROSS JOIN jsonb_array_elements(m.steps) AS request
JOIN public.outbox_delivery d ON d.message_id = m.id AND d.step = request ->> 'name'
WHERE NOT (request -> 'renewable')::boolean AND d.error IS DISTINCT FROM 'the worker was lost'
GROUP BY m.id, d.step
HAVING max(d.started_at) - min(d.started_at) FILTER (WHERE d.outcome NOT IN ('retry', 'park')) > interval '24 hours'
"""
HAS_MESSAGE = """
SELECT d.id AS delivery_id, d.message_id, d.step, d.outcome FROM public.outbox_delivery d
WHERE NOT EXISTS (SELECT FROM public.outbox_message m WHERE m.id = d.message_id)
"""
EVIDENCE = """
SELECT m.id AS message_id, m.topic, m.state, m.outcome_source FROM public.outbox_message m
WHERE m.state IN ('succeeded', 'rejected') AND NOT EXISTS (
    SELECT FROM public.outbox_delivery d WHERE d.message_id = m.id AND d.outcome = m.state)
  AND NOT (m.state = 'rejected' AND m.outcome_source = 'person' AND EXISTS (
    SELECT FROM public.outbox_request r WHERE r.message_id = m.id AND r.carried_out_at IS NOT NULL
        AND r.kind IN ('settle_rejected', 'compensate')))
"""
UNSENT = """
SELECT m.id AS message_id, m.topic, d.id AS delivery_id, d.step, d.outcome FROM public.outbox_message m
JOIN public.outbox_delivery d ON d.message_id = m.id
WHERE m.state = 'cancelled' AND d.outcome NOT IN ('retry', 'park', 'cancelled', 'absent', 'unanswered')
UNION ALL
SELECT id, topic, NULL, NULL, NULL FROM public.outbox_message WHERE state = 'cancelled' AND first_sent_at IS NOT NULL
"""
IN_ORDER = """
SELECT younger.id AS message_id, younger.aggregate, older.id AS older, older.state FROM public.outbox_message older
JOIN public.outbox_message younger ON younger.aggregate = older.aggregate AND younger.id > older.id
WHERE older.state IN ('ready', 'leased', 'accepted', 'uncertain', 'dead')
    AND (younger.first_sent_at IS NOT NULL OR younger.state IN ('leased', 'succeeded', 'rejected'))
"""
ONE_HELD = """
SELECT aggregate, count(*) AS held FROM public.outbox_message WHERE state = 'leased' GROUP BY aggregate HAVING count(*) > 1
"""
ONCE = """
SELECT dedupe_key, count(*) AS messages FROM public.outbox_message GROUP BY dedupe_key HAVING count(*) > 1
"""
SETTLED = """
SELECT c.id AS change_id, c.table_name, c.operation, c.message_id, m.state, c.subject, m.subject AS subject_of_message
FROM public.ledger_row_change c LEFT JOIN public.outbox_message m ON m.id = c.message_id
WHERE c.message_id IS NOT NULL
  AND (m.subject IS DISTINCT FROM c.subject OR coalesce(m.state, '') NOT IN ('succeeded', 'rejected', 'cancelled')
       AND NOT EXISTS (SELECT FROM public.outbox_request r
                       WHERE r.message_id = m.id AND r.kind = 'adopt' AND r.carried_out_at IS NOT NULL))
"""
# Who takes something back in time is in time: it leaves after that only.
TAKEN_BACK = """
SELECT m.id AS message_id, m.topic, m.state, m.undo_until, m.first_sent_at, NULL AS request_id FROM public.outbox_message m
WHERE m.first_sent_at < m.undo_until
UNION ALL
SELECT m.id, m.topic, m.state, m.undo_until, m.first_sent_at, r.id FROM public.outbox_message m
JOIN public.outbox_request r ON r.message_id = m.id
WHERE r.kind = 'cancel' AND r.requested_at < m.undo_until AND r.carried_out_at IS NOT NULL AND m.state <> 'cancelled'
"""
LEASES = """
SELECT id AS message_id, topic, lease_owner, leased_until, sending_at FROM public.outbox_message
WHERE state = 'leased' AND (leased_until < now() - %(age)s OR %(quiet)s)
"""
# What waits behind a message that the provider has not finished, or that a person must look at, waits with it.
DELIVERED = """
SELECT m.id AS message_id, m.topic, m.state, m.attempts, m.next_attempt_at, m.last_error FROM public.outbox_message m
WHERE m.state IN ('ready', 'uncertain') AND (m.next_attempt_at < now() - %(age)s OR %(quiet)s)
  AND NOT EXISTS (SELECT FROM public.outbox_message older WHERE older.aggregate = m.aggregate AND older.id < m.id
                  AND older.state IN ('ready', 'leased', 'accepted', 'uncertain', 'dead'))
  AND NOT EXISTS (SELECT FROM public.outbox_request r WHERE r.message_id = m.id AND r.carried_out_at IS NULL)
"""
REQUESTS = """
SELECT r.id AS request_id, r.kind, r.message_id, r.requested_at FROM public.outbox_request r
WHERE r.carried_out_at IS NULL AND r.requested_at <= now() - %(age)s
"""
EVENTS = """
SELECT event_id, type, object_id, attempts, received_at FROM public.outbox_webhook_event
WHERE processed_at IS NULL AND received_at <= now() - %(age)s
"""

INVARIANTS = (
    Invariant(
        name="outbox.message_has_its_call",
        guarantee=4,
        says="Every message that a conversation caused names the executed call that did, about the same customer.",
        query=HAS_CALL,
    ),
    Invariant(
        name="outbox.success_is_known",
        guarantee=5,
        says=(
            "A message that succeeded was sent, says how we know and, unless a notice, what the provider calls it;"
            " a finished one says when."
        ),
        query=KNOWN,
    ),
    Invariant(
        name="outbox.one_object_a_message",
        guarantee=5,
        says="No object of the provider belongs to two messages.",
        query=ONE_OBJECT,
    ),
    Invariant(
        name="outbox.request_is_frozen",
        guarantee=5,
        says="A message's requests carry the keys they were written with; only a step that moves nothing twice has a new one.",
        query=FROZEN,
    ),
    Invariant(
        name="outbox.key_is_not_too_old",
        guarantee=5,
        says="No step that would move money again was sent a day after a call of it that may have been executed.",
        query=TOO_LATE,
    ),
    Invariant(
        name="outbox.delivery_has_message",
        guarantee=6,
        says="Every delivery belongs to a message.",
        query=HAS_MESSAGE,
    ),
    Invariant(
        name="outbox.outcome_has_evidence",
        guarantee=6,
        says="A message that succeeded or was refused has a delivery in which the provider said so, or a person's request.",
        query=EVIDENCE,
    ),
    Invariant(
        name="outbox.withdrawn_was_never_sent",
        guarantee=5,
        says="A message that was withdrawn has never reached the provider.",
        query=UNSENT,
    ),
    Invariant(
        name="outbox.undone_in_time_is_withdrawn",
        guarantee=5,
        says="No message left while it could still be taken back, and what was taken back in time was withdrawn.",
        query=TAKEN_BACK,
    ),
    Invariant(
        name="outbox.sent_in_order",
        guarantee=5,
        says="No message was sent while an older one of the same invoice or payment was unfinished.",
        query=IN_ORDER,
    ),
    Invariant(
        name="outbox.one_in_flight",
        guarantee=5,
        says="At most one message of an invoice or payment is held by a worker.",
        query=ONE_HELD,
    ),
    Invariant(
        name="outbox.effect_queued_once",
        guarantee=4,
        says="Every effect has one message.",
        query=ONCE,
    ),
    Invariant(
        name="outbox.settled_message_changed_the_row",
        guarantee=2,
        says=(
            "Whatever settling changed in the books belongs to a finished message about the same customer, or to one that a"
            " reviewer had the books follow."
        ),
        query=SETTLED,
    ),
    Invariant(
        name="outbox.lease_ends",
        guarantee=11,
        says="No message is held by a worker long after its lease ran out.",
        query=LEASES,
        age=SOON,
    ),
    Invariant(
        name="outbox.due_is_delivered",
        guarantee=11,
        says="No message is due for long without being sent or looked up.",
        query=DELIVERED,
        age=SOON,
    ),
    Invariant(
        name="outbox.wish_is_carried_out",
        guarantee=11,
        says="What a person asked for about a message was done, or answered, soon.",
        query=REQUESTS,
        age=SOON,
    ),
    Invariant(
        name="outbox.event_is_processed",
        guarantee=11,
        says="Every event of the provider is processed, or given up with a reason, within an hour.",
        query=EVENTS,
        age=timedelta(hours=1),
    ),
)
