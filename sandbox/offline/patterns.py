"""What a clause must consist of to be an act, word by word, by their tags."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Pattern:
    """A clause is an act when it has one word of every need and nothing outside `needs` and `may`."""

    act: str
    needs: str  # "CREATE|GIVE INVOICE": one of CREATE and GIVE, and INVOICE
    may: str = ""
    never: str = ""  # "TO INVOICE|INV": not when TO stands beside one of INVOICE and INV, because that can mean something else
    run: str = ""  # "FROM CREDIT|BALANCE": these must stand next to each other in this order
    after: str = ""  # "create apply": only when one of these acts came before

    def fits(self, tags: Sequence[str], *, before: Collection[str] = ()) -> bool:
        """Say whether these tags, silent ones left out, are this act after the acts `before`."""
        present, needs, never = frozenset(tags), _alternatives(self.needs), _alternatives(self.never)
        if never and all(need & present for need in never):
            return False
        if (self.after and not frozenset(self.after.split()) & set(before)) or not stands(tags, self.run):
            return False
        return present <= frozenset(self.may.split()).union(*needs) and all(need & present for need in needs)


def _alternatives(needs: str) -> list[frozenset[str]]:
    return [frozenset(need.split("|")) for need in needs.split()]


def stands(tags: Sequence[str], run: str) -> bool:
    """Say whether the run stands somewhere in the tags."""
    wanted = _alternatives(run)
    starts = range(len(tags) - len(wanted) + 1)
    return not wanted or any(all(tags[start + index] in want for index, want in enumerate(wanted)) for start in starts)


def is_limit(tags: Sequence[str]) -> bool:
    """Say whether something is what an amount should become, or the most that it may be: "to €30", "up to €50"."""
    open_ended = any(
        tag == "UNTIL" and tuple(tags[max(index - 1, 0) : index + 2 : 2]) != ("PER", "PER") for index, tag in enumerate(tags)
    )
    return open_ended or stands(tags, "TO AMT")


TARGET = "PER INV INVOICE IT BOTH LATEST THEM TO WITH UNTIL DRAFT OPEN AND COMMA"
WHY = "REASON CAUSE"
ASKED = "SHOW ASKING DO STATUS ALL THEM TO WITH IT BACK AND"
READ = frozenset(
    {"look_up", "balance", "open_invoices", "payments", "invoice_status", "charge_status", "refund_status", "last_actions"}
)
VERBS = frozenset({
    "CREATE", "ADD", "BILL", "CHARGE", "DEBIT", "RETRY", "REFUND", "CREDITING", "GIVE", "SEND", "VOID", "CANCEL", "REISSUE",
    "REPLACE", "USE", "APPLY", "PUT", "TAKE", "DEDUCT", "SETTLE", "MOVE", "DO", "SHOW", "BRING",
})  # fmt: skip
# What a clause after another one must begin with; a month or an amount alone belongs to the clause before.
BEGINNINGS = VERBS | {"MEMO", "WRONG", "ASKING", "STATUS", "DONE", "HELP", "HELLO", "THANKS", "NEVERMIND", "REASON", "CAUSE"}
TALK = frozenset({"help", "courtesy", "nothing"})
FACT = "fact"  # said before what is asked for: "the November invoice is wrong"

# The first pattern that fits decides: the particular ones come before the general ones.
PATTERNS: tuple[Pattern, ...] = (
    # -- talk
    Pattern("courtesy", "HELLO|THANKS", "COMMA THEM ALL"),
    Pattern("help", "HELP", "ASKING THEM SHOW COMMA"),
    Pattern("nothing", "NEVERMIND|CANCEL", "IT ALL COMMA"),
    # -- credit memos
    Pattern("memo", "MEMO", f"CREATE GIVE PUT DO AMT ALL NEW AGAINST FROM {TARGET} {WHY}"),
    Pattern("memo", "CREDITING AMT|ALL", f"ACCOUNT BALANCE BACK {TARGET} {WHY}", "TO INVOICE|INV"),
    Pattern("memo", "GIVE|CREATE|ADD CREDIT AMT", f"BACK NEW ACCOUNT BALANCE {TARGET} {WHY}", "TO INVOICE|INV"),
    Pattern("memo", "GIVE|CREATE|ADD|PUT BALANCE|ACCOUNT AMT", f"NEW CREDIT {TARGET} {WHY}", "TO INVOICE|INV"),
    # -- moving credit
    Pattern("move", "MOVE CREDIT|AMT FROM TO", f"ALL CREDIT AMT BALANCE {TARGET} {WHY}"),
    # -- off the invoice just named
    Pattern("apply", "DEDUCT|TAKE CREDIT|BALANCE AMT FROM|OFF IT", run="FROM|OFF IT"),
    # -- off the balance; "again" and "back" after a credit memo only undo it
    Pattern("deduct", "DEDUCT|DEBIT BALANCE|CREDIT", "AMT ALL IT FROM THEM OFF ACCOUNT TO CARD RETRY BACK"),
    Pattern("deduct", "TAKE OFF|FROM BALANCE|CREDIT", "AMT ALL IT THEM ACCOUNT RETRY BACK"),
    Pattern("deduct", "BRING|PUT DOWN BALANCE|CREDIT AMT", "THEM ACCOUNT"),
    # -- credit on an invoice
    Pattern("settle", "SEND|SETTLE CREDIT|BALANCE", f"FROM ALL USE APPLY AGAINST {TARGET}"),
    Pattern("settle", "TAKE FROM CREDIT|BALANCE INVOICE|INV", f"ALL {TARGET}", run="FROM CREDIT|BALANCE"),
    Pattern("apply", "SEND|SETTLE CREDIT|BALANCE AMT", f"FROM USE APPLY {TARGET}"),
    Pattern("apply", "USE|APPLY CREDIT|BALANCE", f"AMT ALL REST AGAINST FROM OFF {TARGET}"),
    Pattern("apply", "APPLY AMT", f"ALL AGAINST FROM {TARGET}"),
    Pattern("apply", "PUT|TAKE CREDIT|BALANCE AGAINST", f"AMT ALL REST FROM OFF {TARGET}"),
    Pattern("apply", "AMT|ALL CREDIT|BALANCE AGAINST INVOICE|INV|PER", TARGET),
    Pattern("apply", "TAKE CREDIT", f"AMT ALL REST {TARGET}"),
    Pattern("apply", "TAKE OFF WITH|USE CREDIT|BALANCE", f"AMT ALL {TARGET}"),
    Pattern("apply", "DEDUCT WITH|USE CREDIT|BALANCE INVOICE|INV|PER", f"AMT ALL FROM OFF {TARGET}"),
    Pattern("apply", "DEDUCT|TAKE CREDIT FROM|OFF INVOICE|INV", f"AMT ALL {TARGET}"),
    Pattern("apply", "USE|APPLY IT INVOICE|INV|PER", f"AGAINST {TARGET}", after="memo"),
    Pattern("apply", "PUT AMT|IT AGAINST|TO INVOICE|INV|PER", f"AGAINST {TARGET}", after="memo"),
    Pattern("apply", "LESS AMT CREDIT|BALANCE", "FROM THEM", after="create"),
    Pattern("apply", "AMT FROM CREDIT|BALANCE INVOICE|INV|PER", TARGET, run="FROM CREDIT|BALANCE"),
    Pattern("apply", "AMT FROM CREDIT|BALANCE", "IT THEM", run="FROM CREDIT|BALANCE", after="create"),
    Pattern("apply", "MOVE CREDIT TO INVOICE|INV|PER", f"AMT ALL BALANCE FROM {TARGET}"),
    # -- refunds
    Pattern("refund", "REFUND", f"CREATE GIVE DO SEND AMT ALL PAYMENT CARD FROM CHARGE {TARGET} {WHY}"),
    Pattern("refund", "REFUND PART AMT", f"CREATE GIVE DO SEND BACK PAYMENT CARD FROM {TARGET} {WHY}"),
    Pattern("refund", "CREATE|GIVE|SEND AMT|IT CARD TO", "PAYMENT THEM", after="deduct"),
    Pattern("refund", "MOVE BACK CARD AMT|ALL", f"PAYMENT FROM {TARGET} {WHY}"),
    Pattern("refund", "GIVE|SEND|PUT|CREATE BACK", f"AMT ALL PAYMENT CARD FROM {TARGET} {WHY}"),
    # -- charges
    Pattern(
        "retry", "RETRY CHARGE|PAYMENT|CARD|INVOICE|INV|PER|REFUSED", f"CHARGE DEBIT CARD PAYMENT REFUSED FROM ALL AMT {TARGET}"
    ),
    Pattern("retry", "CHARGE RETRY|REFUSED", f"CARD REFUSED DO GIVE ALL {TARGET}"),
    Pattern("retry", "RETRY IT", after="fact charge retry"),
    Pattern("retry", "RETRY", after="fact"),
    Pattern("charge", "CHARGE REST", f"ALL AMT CARD FROM {TARGET}"),
    Pattern("charge", "CHARGE BALANCE", f"ALL CARD {TARGET}"),
    Pattern("charge", "CHARGE", f"DO CREATE AMT ALL CARD PAYMENT FROM {TARGET}"),
    Pattern("charge", "DEBIT", f"REST AMT ALL CARD FROM {TARGET}"),
    Pattern("charge", "TAKE|PUT|BILL|SEND|SETTLE REST CARD", f"ALL AMT FROM OFF {TARGET}"),
    Pattern("charge", "PUT CARD INVOICE|INV|PER", f"ALL {TARGET}"),
    Pattern("charge", "TAKE IT|ALL CARD FROM|OFF", after="create reissue"),
    Pattern("charge", "PUT CARD IT", after="create reissue"),
    Pattern("charge", "REST CARD", "FROM TO WITH", after="create apply settle"),
    Pattern("charge", "TAKE AMT CARD FROM|OFF", f"ALL {TARGET}"),
    Pattern("charge", "TAKE PAYMENT|INVOICE|INV CARD FROM|OFF", f"ALL {TARGET}"),
    Pattern("charge", "DO CARD PER|INV|INVOICE", f"ALL {TARGET}"),
    Pattern("charge", "BILL AMT CARD", f"ALL {TARGET}"),
    Pattern("charge", "BILL REST|CARD", f"ALL {TARGET}"),
    # -- invoices
    Pattern("replace", "REPLACE", f"NEW AMT TEXT CREATE INSTEAD {TARGET} {WHY}"),
    Pattern("reissue", "REISSUE", f"NEW AMT TEXT ITEM INSTEAD ALL {TARGET} {WHY}"),
    Pattern("again", "CREATE|BILL RETRY|INSTEAD", f"NEW AMT TEXT ITEM {TARGET}"),
    Pattern("reissue", "CREATE NEW", "AMT TEXT ITEM PER TO THEM INVOICE", after="void"),
    Pattern("void", "VOID|CANCEL INVOICE|INV|PER|DRAFT|LATEST", f"CANCEL ALL FROM {TARGET} {WHY}"),
    Pattern("void", "VOID", f"IT THEM {WHY}"),
    Pattern("create", "CREATE|GIVE INVOICE", f"AMT NEW COUNT EACH TEXT ITEM ALL FROM {TARGET}"),
    Pattern("create", "DO INVOICE AMT", f"NEW EACH TEXT ITEM {TARGET}"),
    Pattern("create", "ADD INVOICE", "AMT NEW TEXT ITEM PER"),
    Pattern("create", "BILL", f"AMT EACH TEXT ITEM ALL FROM {TARGET}"),
    Pattern("create", "CREATE"),  # and what comes next: "create and charge an invoice"
    Pattern("create", "INVOICE PER AMT", "COUNT EACH TEXT ITEM NEW THEM TO COMMA AND"),
    # -- what is said before it is asked for
    Pattern("fact", "WRONG INVOICE|INV|PER|CHARGE|PAYMENT", f"CARD {TARGET}"),
    Pattern("fact", "WRONG IT", after="void refund memo reissue replace"),
    # -- questions
    Pattern("last_actions", "DONE", f"RETRY LATEST ACCOUNT {ASKED}"),
    Pattern(
        "refund_status",
        "REFUND|RETURNED STATUS|THROUGH|ASKING|SHOW",
        f"{ASKED} THROUGH RETURNED CARD PAID REFUSED PAYMENT FROM AMT OFF {TARGET}",
    ),
    Pattern(
        "charge_status",
        "CHARGE|DEBIT STATUS|THROUGH|ASKING|SHOW|REFUSED",
        f"{ASKED} THROUGH CARD PAID REFUSED PAYMENT FROM {TARGET}",
    ),
    Pattern("charge_status", "CARD|PAYMENT THROUGH|REFUSED|STATUS", f"{ASKED} CHARGE STATUS THROUGH REFUSED FROM {TARGET}"),
    Pattern("open_invoices", "OWE|OPEN SHOW|ASKING", f"{ASKED} INVOICE OWE CHARGE PAYMENT AMT OPEN"),
    Pattern("open_invoices", "OPEN INVOICE", ASKED),
    Pattern("open_invoices", "REST ASKING|SHOW", ASKED),
    Pattern("invoice_status", "REST PER|INV|INVOICE", f"{ASKED} {TARGET}"),
    Pattern("open_invoices", "SHOW|ASKING INVOICE", f"{ASKED} DRAFT"),
    Pattern("invoice_status", "STATUS|PAID|SHOW|ASKING INVOICE|INV|PER", f"{ASKED} THROUGH PAID OPEN REFUSED {TARGET}"),
    Pattern("invoice_status", "ASKING SETTLE INVOICE|INV|PER", f"{ASKED} {TARGET}"),
    Pattern("invoice_status", "INV", "IT"),
    Pattern("payments", "PAYMENT|PAID", f"{ASKED} CARD ACCOUNT DONE {TARGET}"),
    Pattern("payments", "PAYMENT ASKING", f"{ASKED} CREATE CARD FROM THROUGH {TARGET}"),
    Pattern("payments", "ASKING SEND", f"{ASKED} LATEST"),
    Pattern("balance", "BALANCE", f"{ASKED} CREDIT ACCOUNT REST"),
    Pattern("balance", "CREDITING ASKING", "ALL THEM"),
    Pattern("balance", "CREDIT|BALANCE REST|OWE", f"{ASKED} ACCOUNT"),
    Pattern("open_invoices", "REST", ASKED),
    Pattern("balance", "CREDIT SHOW|ASKING", f"{ASKED} ACCOUNT BALANCE REST"),
    Pattern("look_up", "SHOW|ACCOUNT|ASKING THEM|ACCOUNT", f"{ASKED} STATUS ACCOUNT"),
    Pattern("look_up", "CARD ASKING|SHOW", ASKED),
    Pattern("look_up", "SHOW ALL", f"{ASKED} ACCOUNT"),
)
