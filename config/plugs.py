"""Where engine and domain meet: dotted paths; the engine never imports either. A part of the settings."""

BACKSTOP_TOOLS = "billing.tools.TOOLS"
BACKSTOP_POLICIES = "billing.policies.RULES"
BACKSTOP_POLICY_FACTS = "billing.policies.KNOWLEDGE"  # what those rules know of a subject, see agent.policies.Knowledge
BACKSTOP_SECOND_REVIEWER = "agent.second_limits.smallest"  # (conn, currency=…) -> above which two people put right by hand
BACKSTOP_MASKS = "billing.masks.MASKS"  # what is made up in a row, and so not part of what a person approves
BACKSTOP_SENTENCES = "billing.sentences.SENTENCES"
BACKSTOP_EDITS = "agent.edits.check"  # (calls, subject=…) -> what is wrong with calls that a person changed, field by field
BACKSTOP_SUBJECTS = "billing.subjects"
BACKSTOP_MONEY = "billing.money.format"  # (minor units, currency) -> what people read
BACKSTOP_MONEY_PARSE = "billing.money.parse"  # (what people write, currency) -> minor units, or a ValueError with a sentence
BACKSTOP_OUTBOX_HANDLERS = ["billing.handlers.HANDLERS", "escalations.notifications.HANDLERS"]
BACKSTOP_EFFECT = "outbox.effects.Effect"  # (message=…) -> where an external effect stands, for the pages of the trail
BACKSTOP_PRUNE = "outbox.pruning.prune"  # (conn, before=…, after=…, go_on=…) -> where to go on, or None when all is done
BACKSTOP_PRUNE_BESIDES = ["escalations.pruning.scans"]  # (conn, before=…), once that is done
# Queries that name the messages, of some, which rows elsewhere still refer to; those are never pruned.
BACKSTOP_NEEDS_MESSAGES = ["outbox.pruning.LEDGER", "escalations.pruning.MESSAGES", "billing.pruning.MESSAGES"]
BACKSTOP_OFFLINE_MODEL = "sandbox.offline.model.OfflineModel"
BACKSTOP_PROVIDER_LOG = "sandbox.comparison.compare"  # (conn, quiet=…) -> how the books agree with the provider's own log
# Called inside the settling transaction, in this order, with keyword arguments (conn, message, outcome).
BACKSTOP_ON_SETTLED = ["escalations.settled.open_if_needed", "agent.settled.tell_conversation"]
# Called when the provider says otherwise than a finished message, inside one transaction, with (conn, message, status).
BACKSTOP_ON_CONTRADICTED = ["escalations.settled.open_contradicted", "agent.settled.tell_contradiction"]
# Called inside the transaction that opens or decides an escalation, with keyword arguments (conn, escalation).
BACKSTOP_ON_ESCALATION = ["agent.settled.tell_escalation", "escalations.notifications.tell"]
