"""Asking the provider what became of a message: by the object's id, else by a list. Absence is proved by all pages only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Literal

from outbox.leases import Row
from outbox.outcomes import Answer, Outcome, judge_object

Get = Callable[[str, Mapping[str, Any]], Answer]

UID = "backstop_uid"  # the metadata entry that every object of ours carries
PAGE = 100
EARLIER = timedelta(minutes=5)  # the provider's clock may be behind ours
# What narrows a list to one message's candidates. No search: it lags, and knows no refunds and no notes.
NARROWED_BY: Mapping[str, str] = MappingProxyType(
    {"/v1/payment_intents": "customer", "/v1/refunds": "payment_intent", "/v1/credit_notes": "invoice"}
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """known: settle with the outcome · unsent: the object is there, its next step is not done · absent: there is none ·
    unanswered: the provider did not say."""

    kind: Literal["known", "unsent", "absent", "unanswered"]
    outcome: Outcome


def find(get: Get, *, message: Row, provider_id: str | None = None) -> Finding:
    """Return how things stand at the provider; `get` makes one GET. `provider_id` overrides the message's own."""
    first = message["steps"][0]
    known_id = provider_id or message["provider_id"]
    if known_id:
        answer = get(f"{first['path']}/{known_id}", {})
        return _told(answer) or judged(answer, asked=first["params"])
    return _listed(get, message=message, path=first["path"], asked=first["params"])


def judged(answer: Answer, *, asked: Mapping[str, Any]) -> Finding:
    """Return what a 200 answer that holds one object says."""
    outcome = _seen(answer, judge_object(answer.body or {}, asked=asked, last=False))
    if outcome.kind == "advanced":
        return Finding(kind="unsent", outcome=outcome)
    if outcome.kind == "uncertain":  # another amount, or a status that we do not know: no machine should go on
        return Finding(kind="known", outcome=replace(outcome, kind="dead"))
    return Finding(kind="known", outcome=outcome)


def _listed(get: Get, *, message: Row, path: str, asked: Mapping[str, Any]) -> Finding:
    narrow = NARROWED_BY[path]
    params: dict[str, Any] = {narrow: asked[narrow], "limit": PAGE}
    if path == "/v1/payment_intents" and message["first_sent_at"]:
        params["created"] = {"gte": int((message["first_sent_at"] - EARLIER).timestamp())}
    found: list[Mapping[str, Any]] = []
    while True:
        answer = get(path, params)
        if failed := _told(answer):
            return failed
        page = (answer.body or {}).get("data") or []
        found += [one for one in page if (one.get("metadata") or {}).get(UID) == str(message["uid"])]
        if not (answer.body or {}).get("has_more") or not page:
            return _chosen(found, answer, asked=asked)
        params["starting_after"] = page[-1]["id"]


def _chosen(found: list[Mapping[str, Any]], answer: Answer, *, asked: Mapping[str, Any]) -> Finding:
    if not found:
        return Finding(kind="absent", outcome=_seen(answer, Outcome(kind="uncertain")))
    if len(found) > 1:
        several = Outcome(kind="dead", error=f"{len(found)} objects carry its uid")
        return Finding(kind="known", outcome=_seen(answer, several))
    return judged(replace(answer, body=found[0]), asked=asked)


def _told(answer: Answer) -> Finding | None:
    """Return the finding of an answer that holds no object, or None for one that does."""
    code = str(answer.error.get("code") or answer.error.get("type") or "")
    unread = answer.status is not None and answer.body is None  # "200" alone would tell nobody what went wrong
    named = f"{answer.status or answer.failure} {'unreadable' if unread else code}".strip()
    if answer.status == 200 and answer.body is not None:
        return None
    if answer.status in (401, 403):
        return Finding(kind="unanswered", outcome=_seen(answer, Outcome(kind="park", error=named)))
    if answer.status in (400, 404) and answer.body is not None and code != "rate_limit":
        refused = Outcome(kind="dead", error=f"the look-up was refused: {named}")
        return Finding(kind="known", outcome=_seen(answer, refused))
    retry = Outcome(kind="retry", error=named, retry_after=answer.retry_after)
    return Finding(kind="unanswered", outcome=_seen(answer, retry))


def _seen(answer: Answer, outcome: Outcome) -> Outcome:
    return replace(outcome, http_status=answer.status, request_id=answer.request_id)
