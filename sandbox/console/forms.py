"""What an admin wants of the Stripe sandbox, checked before it is asked; each form says its wish in the control API's words."""

from typing import Any

from django import forms

from sandbox.console import mishaps

HOUR = 3600  # seconds
UNITS = {"60": "minutes", str(HOUR): "hours", str(24 * HOUR): "days"}
JUMPS = {1: "+1 h", 25: "+25 h", 8 * 24: "+8 d"}  # hours → what the button says
FURTHEST = 366 * 24 * HOUR  # seconds at once, far more than any rule of Stripe's
Wish = dict[str, Any]


def whole(what: str, *, least: int, most: int, **more: Any) -> forms.IntegerField:
    """Return a field for a whole number, with one sentence for everything else."""
    sentence = f"Write {what} as a whole number from {least:,} to {most:,}."
    return forms.IntegerField(
        min_value=least,
        max_value=most,
        error_messages=dict.fromkeys(("required", "invalid", "min_value", "max_value"), sentence),
        **more,
    )


class ObjectFilters(forms.Form):
    """Which objects are listed."""

    KINDS = {
        "": "All",
        "customer": "Customers",
        "payment_intent": "Payments",
        "refund": "Refunds",
        "invoice": "Invoices",
        "credit_note": "Credit notes",
    }
    kind = forms.ChoiceField(choices=list(KINDS.items()), required=False)
    q = forms.CharField(max_length=100, required=False)


class FaultForm(forms.Form):
    """Which call, what goes wrong, how often."""

    target = forms.ChoiceField(choices=[(name, target.words) for name, target in mishaps.TARGETS.items()], initial="confirm")
    mishap = forms.ChoiceField(choices=mishaps.choices(), initial="after:drop")
    count = whole("how many calls", least=1, most=10_000, required=False, initial=1)
    share = whole("the share", least=1, most=100, initial=100)
    seconds = whole("the seconds", least=0, most=600, initial=0)

    def wish(self) -> Wish:
        """Return the rule."""
        given = self.cleaned_data
        target, (when, mode) = mishaps.TARGETS[given["target"]], given["mishap"].split(":")
        where = {"when": when, "mode": mode, "method": target.method, "path": target.path}
        return where | {"count": given["count"], "probability": given["share"] / 100, "seconds": given["seconds"]}


class LimitForm(forms.Form):
    """How many calls a second are let through; empty is no limit."""

    per_second = whole("the calls", least=1, most=10_000, required=False)
    per_endpoint = whole("the calls", least=1, most=10_000, required=False)


class LiftForm(forms.Form):
    """Which fault ends; without a number, all of them."""

    fault = forms.IntegerField(min_value=1, required=False)


class ClockForm(forms.Form):
    """How far the clock goes forward: so many of a unit."""

    amount = whole("how far", least=1, most=1000)
    unit = forms.ChoiceField(choices=list(UNITS.items()), initial=str(HOUR))

    def clean(self) -> Wish:
        """Refuse what is further than a year."""
        found = super().clean() or {}
        if not self.errors and self.seconds() > FURTHEST:
            self.add_error("amount", "Go forward by a year at most at once.")
        return found

    def seconds(self) -> int:
        """Return the way in seconds."""
        return int(self.cleaned_data["amount"]) * int(self.cleaned_data["unit"])


class BehaviourForm(forms.Form):
    """One change of how webhooks are delivered."""

    ACTIONS = ("pause", "resume", "delay", "duplicate", "reorder", "in_order", "drop", "normal", "resend", "twin")
    COUNTED = {"delay": "seconds", "duplicate": "copies", "drop": "count"}
    LEAST = {"delay": 0, "duplicate": 1, "drop": 0}
    MOST = {"delay": 30 * 24 * HOUR, "duplicate": 10, "drop": 10_000}
    action = forms.ChoiceField(choices=[(action, action) for action in ACTIONS])
    number = forms.IntegerField(required=False)
    event = forms.RegexField(r"^evt_[A-Za-z0-9]{1,60}$", required=False)

    def clean(self) -> Wish:
        """See that the number or the event is there that the action needs."""
        found = super().clean() or {}
        action, number = found.get("action"), found.get("number")
        if action in self.COUNTED and not (number is not None and self.LEAST[action] <= number <= self.MOST[action]):
            raise forms.ValidationError(f"Write a whole number from {self.LEAST[action]} to {self.MOST[action]:,}.")
        if action in ("resend", "twin") and not found.get("event"):
            raise forms.ValidationError("Say which event.")
        return found

    def wish(self) -> Wish:
        """Return the change in the control API's words."""
        given, action = self.cleaned_data, self.cleaned_data["action"]
        if action in self.COUNTED:
            return {"action": action, self.COUNTED[action]: given["number"]}
        return {"action": action, "event": given["event"]} if action in ("resend", "twin") else {"action": action}


class ForgeForm(forms.Form):
    """An event delivered in a way that an application must refuse."""

    HOWS = {
        "secret": "signed with another secret",
        "changed": "changed after it was signed",
        "old": "signed an hour ago",
        "future": "signed an hour from now",
        "livemode": "of the live mode",
    }
    how = forms.ChoiceField(choices=list(HOWS.items()))
    event = forms.RegexField(r"^evt_[A-Za-z0-9]{1,60}$")


class SettleForm(forms.Form):
    """What becomes of something under way."""

    ENDS = {
        "succeeded": "Let it succeed",
        "failed": "Let it fail",
        "canceled": "Cancel it",
        "requires_action": "Ask the customer",
    }
    id = forms.RegexField(r"^(pi|re)_[A-Za-z0-9]{1,60}$")
    status = forms.ChoiceField(choices=list(ENDS.items()))
