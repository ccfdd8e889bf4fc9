"""The exits as a page offers them: what each would do, which fits what is known, and why one is not offered. Pure.

The outbox says which of them a message allows (`outbox.requests.possible`), and has the last word when it is asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from outbox.reconciling import Verdict

AGREED = {("succeeded", "moved"), ("rejected", "refused")}  # a message's state, and what the provider shows


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One exit. `then` is said beside the button that takes it."""

    kind: str
    title: str
    small: str
    verb: str
    then: str
    icon: str = "check"
    fits: bool = False
    offered: bool = True
    chosen: bool = False  # the first that fits


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the offers depend on."""

    exits: Sequence[str]  # of the escalation
    message: Any = None  # the outbox message, if it is about one
    possible: Sequence[str] = ()  # what the message's state allows to be asked of it
    verdict: Verdict = "unknown"
    own: bool = False  # the disagreement is the message's own, not one of the books with it
    second_above: str = ""  # the amount above which a second person is needed
    now: datetime


def of(known: Known) -> list[Offer]:
    """Return all exits of a disagreement, in the order in which they are thought of; the first that fits is chosen."""
    made = {"adopt": _adopt, "resend": _resend, "settle_rejected": _settle_rejected, "refund": _refund}
    made |= {"replay_thread": _replay, "compensate": _compensate}
    offers = [make(known) for kind, make in made.items() if kind in known.exits]
    first = next((offer for offer in offers if offer.fits and offer.offered), None)
    return [replace(offer, chosen=offer is first) for offer in offers]


def _who(known: Known) -> str:
    return str(known.message.destination).capitalize() if known.message is not None else "the provider"


def _object(known: Known) -> str:
    seen = (known.message.seen or {}) if known.message is not None else {}
    return str(seen.get("id") or "what is there")


def _adopt(known: Known) -> Offer:
    return _adopt_own(known) if known.own else _follow(known)


def _follow(known: Known) -> Offer:
    """Return the offer that books, or a message, follow what is known at the provider: a scan found that they can."""
    who, offered = _who(known), "adopt" in known.possible
    return Offer(
        kind="adopt",
        title=f"Adopt what {who} says",
        small=f"{who} is asked once more; what it says counts, and the books follow it. No money moves."
        if offered
        else _not_now(known),
        verb="Adopt",
        then="Adopt: the books become what the provider says, no money moves.",
        fits="refund" not in known.exits,
        offered=offered,
    )


def _adopt_own(known: Known) -> Offer:
    who = _who(known)
    says = {
        "moved": f"It becomes confirmed with {_object(known)}, and the books follow. The conversation is told. No money moves.",
        "refused": "It becomes refused, and the books follow. The conversation is told. No money moves.",
        "unknown": f"It is looked up first; what {who} says then counts. No money moves.",
        "absent": f"Not offered: {who} shows nothing of it.",
        "open": f"Not offered: {who} has not finished it.",
    }[known.verdict]
    agreed = known.message is not None and (known.message.state, known.verdict) in AGREED
    offered = "adopt" in known.possible and known.verdict not in ("absent", "open") and not agreed
    return Offer(
        kind="adopt",
        title=f"Adopt what {who} says",
        small=says if offered or known.verdict in ("absent", "open") else f"{_not_now(known)[:-1]} already.",
        verb="Adopt",
        then="Adopt: the books become what the provider says, no money moves.",
        fits=known.verdict in ("moved", "refused"),
        offered=offered,
    )


def _resend(known: Known) -> Offer:
    offered, who = "resend" in known.possible, _who(known)
    left = _left(known)
    small = f"{who} answers with the first result while the key lives{left}. No second charge."
    if not offered:
        small = "Not offered: the provider may have forgotten the key, and could move the money twice."
        if known.message is not None and known.message.repeat != "keyed":
            small = "Not offered: what it asks for may not be repeated."
        elif known.message is not None and known.message.state not in ("uncertain", "dead"):
            small = _not_now(known)
    return Offer(
        kind="resend",
        title="Send again with the same key",
        small=small,
        verb="Send again",
        then="Send again: looked up first, then sent with the key that it has.",
        icon="rotate-ccw",
        fits=known.verdict in ("absent", "open"),
        offered=offered,
    )


def _settle_rejected(known: Known) -> Offer:
    moved = known.verdict == "moved"
    offered = "settle_rejected" in known.possible and not moved
    small = "Looked up once more; what could still succeed is cancelled there first. The books are as after a refusal."
    if moved:
        small = f"Not offered: {_who(known)} shows that the money moved."
    elif not offered:
        small = _not_now(known)
    return Offer(
        kind="settle_rejected",
        title="Settle as refused",
        small=small,
        verb="Settle as refused",
        then="Settle as refused: nothing moves, and the conversation is told.",
        icon="ban",
        fits=known.verdict in ("refused", "absent"),
        offered=offered,
    )


def _refund(known: Known) -> Offer:
    who, moved = _who(known), known.verdict == "moved"
    open_still = known.message is not None and known.message.state in ("uncertain", "dead")
    offered = "refund" in known.possible and not open_still and (not known.own or known.verdict in ("moved", "unknown"))
    small = "For money that was taken though nothing is owed: the payment is taken over, and sent back by a message of its own."
    if open_still:
        small = "Not offered: adopt it first. It pays what is owed; a refund can be asked for then."
    elif not offered:
        small = f"Not offered: no money of it is at {who}." if not moved else _not_now(known)
    return Offer(
        kind="refund",
        title=f"Send back what {who} took",
        small=small,
        verb="Send it back",
        then="Send it back: the payment is taken over and refunded to the card.",
        icon="undo-2",
        fits=not known.own,
        offered=offered,
    )


def _replay(known: Known) -> Offer:
    return Offer(
        kind="replay_thread",
        title="Replay the conversation",
        small="Its unfinished step runs again from where it stopped. The ledger answers what was done: nothing is done twice.",
        verb="Replay",
        then="Replay: the agent's worker goes on where the conversation stopped.",
        icon="rotate-ccw",
        fits=True,
    )


def _compensate(known: Known) -> Offer:
    above = f" and, above {known.second_above}, a second reviewer" if known.second_above else ""
    offered = not known.own or "compensate" in known.possible
    what = "For what was put right by hand, or may stay as it is."
    if known.own:
        what = "For money put right by hand: it ends without asking the provider."
    small = f"{what} Needs a note{above}." if offered else "Not offered: it is still looked up and may come right by itself."
    return Offer(
        kind="compensate",
        title="Mark as put right elsewhere",
        small=small,
        verb="Mark as put right",
        then="Mark as put right: nothing is sent."
        if known.own
        else "Mark as put right: it is asked about again only if it changes.",
        icon="user-round-check",
        fits=list(known.exits) == ["compensate"],
        offered=offered,
    )


def _left(known: Known) -> str:
    until = known.message.key_deadline if known.message is not None else None
    if until is None or until <= known.now:
        return ""
    hours, minutes = divmod(int((until - known.now).total_seconds()) // 60, 60)
    return f": {hours} h left" if hours else f": {minutes} min left"


def _not_now(known: Known) -> str:
    state = str(known.message.state) if known.message is not None else "gone"
    return f"Not offered: the message is {state}."
