"""What can go wrong with a call to the provider, in words: which call, and what becomes of it."""

from dataclasses import dataclass
from typing import Any

from sandbox.stripe.faults import MODES

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Target:
    """A kind of call: its method, a regular expression for its path, and its words."""

    method: str
    path: str
    words: str


READ = "payment_intents|refunds|charges|credit_notes"
TARGETS = {
    "confirm": Target(method="POST", path="/v1/payment_intents/[^/]+/confirm", words="Confirm a payment (the money moves)"),
    "create": Target(method="POST", path="/v1/payment_intents", words="Create a payment"),
    "cancel": Target(method="POST", path="/v1/payment_intents/[^/]+/cancel", words="Cancel a payment"),
    "refund": Target(method="POST", path="/v1/refunds", words="Refund (the money moves)"),
    "credit_note": Target(method="POST", path="/v1/credit_notes", words="Issue a credit note"),
    "get": Target(method="GET", path=f"/v1/({READ})/[^/]+", words="Look one object up"),
    "list": Target(method="GET", path=f"/v1/({READ})", words="List objects"),
    "posts": Target(method="POST", path="/v1/.*", words="Every call that changes something"),
    "gets": Target(method="GET", path="/v1/.*", words="Every look-up"),
}
MOMENTS = {
    "before": "Nothing happens there",
    "during": "While it is carried out",
    "after": "It happened; only the answer suffers",
}
WORDS = {
    ("before", "drop"): "The connection breaks, and nothing happened",
    ("before", "400_rate_limit"): "400: too many requests",
    ("before", "401"): "401: the key is no longer valid",
    ("before", "403"): "403: the key may not do this",
    ("before", "409"): "409: the same key is in use",
    ("before", "409_other"): "409: another change was first",
    ("before", "424"): "424: something behind it failed",
    ("before", "429"): "429: too many requests, wait so many seconds",
    ("before", "lock_timeout"): "429: the object is locked",
    ("before", "500"): "500, not saved with the key",
    ("before", "502"): "502 from a proxy",
    ("before", "503"): "503 from a proxy",
    ("before", "504"): "504 from a proxy",
    ("before", "sleep"): "It begins so many seconds late",
    ("during", "drop"): "The connection breaks, and it happens so many seconds later",
    ("during", "429"): "429: too many requests, wait so many seconds; nothing happened",
    ("during", "lock_timeout"): "429: the object is locked; nothing happened",
    ("during", "500"): "500 for ever, and nothing happened",
    ("during", "500_effect"): "500 for ever, and it happened",
    ("during", "500_later"): "500 for ever, and it happens so many seconds later",
    ("during", "sleep"): "It takes so many seconds",
    ("after", "drop"): "The answer is lost",
    ("after", "500"): "500 once, then the answer",
    ("after", "502"): "502 from a proxy",
    ("after", "503"): "503 from a proxy",
    ("after", "504"): "504 from a proxy",
    ("after", "garbage"): "200 with an unreadable body",
    ("after", "trunc"): "The answer ends too early",
    ("after", "sleep"): "The answer comes so many seconds late",
}


def choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what can go wrong, grouped by when; each is "when:mode"."""
    return [(MOMENTS[when], [(f"{when}:{mode}", _words(when, mode)) for mode in modes]) for when, modes in MODES.items()]


def _words(when: str, mode: str) -> str:
    return WORDS.get((when, mode), f"{when}: {mode}")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A fault in force or spent, as people read it."""

    id: int
    target: str
    moment: str
    mishap: str
    often: str
    struck: int
    spent: bool


def line(rule: Json) -> Line:
    """Return a rule of the control API in words."""
    known = {(target.method, target.path): target.words for target in TARGETS.values()}
    return Line(
        id=rule["id"],
        target=known.get((rule["method"], rule["path"]), f"{rule['method']} {rule['path']}"),
        moment=MOMENTS.get(rule["when"], str(rule["when"])),
        mishap=_words(rule["when"], rule["mode"]).replace("so many seconds", f"{rule['seconds']:g} s"),
        often=_often(rule),
        struck=rule["struck"],
        spent=rule["count"] == 0,
    )


def _often(rule: Json) -> str:
    left, share = rule["count"], rule["probability"]
    calls = "every call, until lifted" if left is None else "spent" if left == 0 else f"{left} more call{'s' if left > 1 else ''}"
    return calls if share >= 1 or left == 0 else f"{calls}, {share:.0%} of those that fit"
