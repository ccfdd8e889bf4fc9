"""The words that the offline model knows, by tag. A request with any other word in it is not carried out."""

# Tags that carry no meaning for a request; everything else must be accounted for by a pattern of intents.py.
SILENT = frozenset({"FILL", "REQUEST", "DEF", "INDEF", "OWN", "PREP"})
# Words that are verbs where a clause begins, and nouns or adjectives elsewhere.
OPENERS = {"INVOICE": "BILL", "CREDIT": "CREDITING", "OPEN": "OPEN", "DRAFT": "CREATE"}

PHRASES: dict[str, str] = {
    # -- silent
    "REQUEST": "can you; could you; would you; will you; would you be so kind as to; could you be so kind as to",
    "FILL": (
        "please; kindly; pls; just; now; today; right away; right now; immediately; asap; straight away; at once; quickly; go ahead;"
        " i want you to; i'd like you to; i would like you to; i want to; i'd like to; i would like to; i need to; i need you to;"
        " we need to; we want to; we'd like to; we would like to; i want; i'd like; i would like; i need; we need; we want; let's; let us;"
        " you can; you may; for me; for us; also; too; as well; first; firstly; finally; so; well; up; they have; they've got; they have got;"
        " they still have; that they have; there is; is available; available; the amount of; amount; amounts; sum; month; month of; months;"
        " the months of; period; billing period; dated; number; namely; exactly; which is; that is; it is; it's; be so kind as to;"
        " would you mind; go ahead and; make sure to; file; on file; whose; (; )"
    ),
    "DEF": "the; their; his; her; its; our; those; these; same",
    "INDEF": "a; an; one; some",
    "OWN": "'s; s'; '",
    "PREP": (
        "for; of; at; on; in; by; with; over; worth; worth of; amounting to; totalling; totaling; in the amount of; to the amount of;"
        " for the amount of; via; into; as; within; per; relating to; regarding; onto; under; about"
    ),
    # -- small words that matter to some patterns
    "FROM": "from; out of",
    "TO": "to",
    "UNTIL": "until; till; through; thru; up to and including; up to",
    "AGAINST": "against; toward; towards",
    "OFF": "off",
    "BACK": "back; money back",
    "IT": "it; that; this; them both; that one; this one; that invoice; this invoice; the same invoice; the same amount; that amount",
    "THEM": "them; they; him; she; he; customer; the customer; client; the client; this customer; this client; the customer's",
    "EACH": "each; apiece; each month; every month; for each; per month; a month",
    "ALL": (
        "all; all of; all the; all their; whole; entire; everything; in full; full; fully; complete; completely; the full amount; whatever;"
        " as much as possible; as possible; as much; every cent; any; all available; in its entirety; entirely; remaining credit;"
        " complete amount; whole amount; entire amount; whole of"
    ),
    "REST": (
        "rest; the rest; remainder; remaining; remaining amount; what is left; what's left; whatever is left; whatever's left; difference;"
        " balance due; remaining balance; outstanding balance; outstanding amount; amount due; the amount due; what is due; what's due;"
        " whatever is due; what remains; whatever remains; what is still due; what's still due; open amount; what is outstanding;"
        " what's outstanding; whatever is outstanding; what they owe; full amount due; what is still open; what's still open"
    ),
    "NEW": "new; corrected; correct; fresh; replacement; new one; new invoice; another one; corrected one",
    "INSTEAD": "instead",
    # -- what can be done
    "CREATE": "create; make; issue; raise; generate; draw up; write; write up; prepare; add; set up; put together; produce; send; make out",
    "BILL": "invoicing; billing",
    "CHARGE": "charge; charging; collect; take payment; take the payment; collect payment; collect the payment; capture; take the money",
    "DEBIT": "debit",
    "RETRY": "retry; try; again; try again; once more; one more time; rerun; re-run; reattempt; re-attempt; another attempt; another try",
    "REFUND": "refund; refunding; reimburse; pay back; give back; send back; return; repay; refunds; a refund; reimbursement",
    "CREDITING": "crediting",
    "GIVE": "give; grant; award",
    "SEND": "pay",
    "VOID": "void; annul; invalidate; nullify; voiding",
    "CANCEL": "cancel",
    "REISSUE": "reissue; re-issue; redo; recreate; re-create; issue again; issue it again; reissuing; reinvoice; re-invoice",
    "REPLACE": "replace; replacing; swap",
    "USE": "use; using; spend; consume; use up; draw on; offset; set off",
    "APPLY": "apply; applying",
    "PUT": "put; set; book",
    "TAKE": "take; taking; knock",
    "DEDUCT": "deduct; subtract; reduce; lower; decrease; remove; take off; deducting; withdraw; draw down; pay out; payout",
    "SETTLE": "settle; cover",
    "MOVE": "move; transfer; shift; carry over; reallocate; carry",
    "DO": "do; perform; process; execute; carry out; arrange; initiate; trigger; run; start",
    # -- what it can be done to
    "INVOICE": "invoice; invoices; bill; bills",
    "DRAFT": "draft; drafts",
    "MEMO": "credit memo; credit memos; credit note; credit notes; memo; credit memorandum",
    "CREDIT": "credit; credits; store credit; account credit; credit they have",
    "BALANCE": "balance; credit balance; account balance; balances; balance of credit",
    "CARD": "card; credit card; bank card; payment card; debit card; card on file; credit card on file; original card",
    "PAYMENT": "payment; payments; paid amount; amount paid; what they paid; money",
    "ACCOUNT": "account; details; overview; profile; customer record; record; information; info; customer details; account details",
    "OPEN": "open; unpaid; outstanding; due; overdue; unsettled; not yet paid; still open; still unpaid; still due",
    "REFUSED": "refused; declined; failed; rejected; bounced; that failed; which failed; that was refused; that was declined; unsuccessful",
    "PAID": "paid; settled; been paid",
    # -- questions
    "SHOW": (
        "show; show me; list; display; tell me; give me; check; see; find; get; get me; fetch; pull up; look up; lookup; look at; look into;"
        " bring up; view; print; let me see; let me know; remind me; look; read me; read out"
    ),
    "ASKING": (
        "what; what's; what is; what are; which; who; who's; who is; how much; how many; is; are; was; were; has; have; had; did; does; been;"
        " there; got; left; still; currently; do they have; does the customer have; have they got; so far; yet; already; ever; how is; how are;"
        " when was; at the moment; how's; do they; the customer has; is there; are there; made; we have; we; us; you; do we; where; where is;"
        " doing; did they pay; did the customer pay"
    ),
    "STATUS": "status; state; progress; happened to; happened with; what happened to; what happened with; what about; update; news; stand; stands; become of; how far; going",
    "THROUGH": (
        "go through; gone through; went through; succeed; succeeded; work; worked; arrive; arrived; cleared; completed; processed; landed;"
        " confirmed; sent; reached; come through; taken; successful; finished; executed; carried out; received; charged; refunded; happen;"
        " happened; go out; gone out; went out;"
        " created; invoiced; billed; voided"
    ),
    "OWE": "owe; owes; owing; owe us; owes us",
    "DONE": (
        "what did you do; what have you done; last actions; last action; recent actions; latest actions; recent changes; last changes;"
        " what changed; what was changed; what has been changed; what has changed; activity; history; what happened; what was applied;"
        " the last thing you did; what did you just do; recap; what you did; what you have done; what you changed; latest changes; last change"
    ),
    "HELP": (
        "help; help me; what can you do; what do you understand; what can i ask; what can i say; what can i ask you; commands; options;"
        " how do you work; how does this work; what are you; who are you; capabilities; what are your capabilities; i need help;"
        " what are you able to do; what do you do; instructions; what can you do for me; what are you good for"
    ),
    "HELLO": "hi; hello; hey; good morning; good afternoon; good evening; hi there; hello there; hey there; morning; good day",
    "THANKS": (
        "thanks; thank you; many thanks; thanks a lot; thank you very much; thank you so much; cheers; thx; great; perfect; ok; okay; nice;"
        " good; wonderful; got it; understood; alright; all right; cool; much appreciated; good job; great job; well done; bye; goodbye;"
        " very much; excellent; lovely; have a nice day; very good; in advance"
    ),
    "NEVERMIND": (
        "never mind; nevermind; forget it; forget that; forget about it; stop; abort; nothing; do nothing; don't do anything; no; no thanks;"
        " no thank you; not now; leave it; leave it as it is; scratch that; disregard that; ignore that; that's all; that is all;"
        " nothing else; nothing more; that was all; that's it; don't; do not do anything"
    ),
    # -- clauses
    "AND": "and; &; plus",
    "THEN": "then; after that; afterwards; and then; subsequently; thereafter; and after that; and finally; and afterwards",
    # -- texts that travel with a call
    "CAUSE": (
        "outage; downtime; duplicate; duplicate charge; double charge; double billing; billing error; billing mistake; mistake; error;"
        " overcharge; overbilling; overpayment; goodwill; goodwill gesture; gesture of goodwill; cancellation; service interruption;"
        " interruption; damaged goods; late delivery; complaint; compensation; wrong amount; wrong price; unused seats; courtesy;"
        " wrong period; double payment; duplicate payment; incorrect amount; typo; pricing error"
    ),
    "ITEM": (
        "seats; seat licences; seat licenses; licences; licenses; subscription; subscription fee; hosting; support; support plan; platform fee;"
        " add-on; add-ons; usage; consulting; services; maintenance; setup fee; training; fees; fee; consulting hours; retainer; delivery"
    ),
}
# Everything after these, to the end of the sentence, is somebody's own words.
REASONS = (
    "because of", "because", "since", "due to", "owing to", "on account of", "the reason is", "the reason being", "reason being",
    "reason is", "with the reason", "with reason", "on the grounds that", "reason",
)  # fmt: skip
DESCRIPTIONS = (
    "described as",
    "with the description",
    "with description",
    "description",
    "labelled",
    "labeled",
    "with the text",
    "for the item",
)
PEOPLE = "a person; someone; somebody; a human; a colleague; a reviewer; a supervisor; the supervisor; a manager; my manager; the reviewer; a human being"
ASKING_PEOPLE = "ask; check with; consult; involve; get; escalate to; escalate this to; escalate it to; hand over to; hand this to; hand this over to; talk to"


def phrases(listed: str) -> list[str]:
    """Return the phrases of one entry."""
    return [phrase.strip() for phrase in listed.split(";") if phrase.strip()]


TAGS: dict[str, str] = {phrase: tag for tag, listed in PHRASES.items() for phrase in phrases(listed)}
