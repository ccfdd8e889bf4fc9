"""What the frame of every page shows: the links that a person may open, with the number that waits behind each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from agent import permissions as agent
from agent.models import Conversation, Thread
from escalations import permissions as escalations
from escalations.models import Escalation
from ledger import permissions as ledger
from ledger.roles import roles_of
from outbox import permissions as outbox
from outbox.models import Message
from sandbox.breaking import permissions as breaking
from sandbox.console import permissions as console


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page that the frame links to for those whom `may` lets in.

    `waiting` counts what needs a look there; `hot` draws the count in red.
    """

    route: str
    label: str
    icon: str
    may: Callable[[Any], bool]
    waiting: Callable[[Any], int] | None = None
    counted: str = ""
    hot: bool = False


@dataclass(frozen=True, kw_only=True)
class Link:
    """A page as the template draws it."""

    url: str
    label: str
    icon: str
    current: bool
    count: int
    counted: str
    hot: bool


@dataclass(frozen=True, kw_only=True)
class Group:
    """Links under one heading; the first group has none."""

    title: str
    links: list[Link]


def own_waiting(user: Any) -> int:
    """Return how many of the person's own conversations wait for somebody or are stuck."""
    halted = Thread.objects.filter(state__in=[Thread.State.WAITING, Thread.State.STUCK])
    return Conversation.objects.filter(created_by=user, thread__in=halted.values("thread")).count()


def open_escalations(user: Any) -> int:
    """Return how many escalations wait for a person: undecided, and not put aside."""
    undecided = Q(state__in=[Escalation.State.OPEN, Escalation.State.CLAIMED])
    awake = Q(snoozed_until__isnull=True) | Q(snoozed_until__lte=timezone.now())
    return Escalation.objects.filter(undecided & awake).count()


def open_disagreements(user: Any) -> int:
    """Return how many disagreements wait for a person."""
    undecided = Escalation.objects.filter(state__in=[Escalation.State.OPEN, Escalation.State.CLAIMED])
    return undecided.filter(kind__in=[Escalation.Kind.DIRTY_STATE, Escalation.Kind.UNKNOWN_OUTCOME]).count()


def troubled_messages(user: Any) -> int:
    """Return how many outbox messages have an unknown outcome or need a person."""
    return Message.objects.filter(state__in=[Message.State.UNCERTAIN, Message.State.DEAD]).count()


PAGES: dict[str, tuple[Page, ...]] = {
    "": (
        Page(
            route="agent:conversations",
            label="Conversations",
            icon="messages-square",
            may=agent.user_can_read,
            waiting=own_waiting,
            counted="of yours wait",
        ),
        Page(
            route="escalations:inbox",
            label="Inbox",
            icon="inbox",
            may=escalations.user_can_read,
            waiting=open_escalations,
            counted="open",
            hot=True,
        ),
        Page(
            route="escalations:reconcile",
            label="Reconcile",
            icon="git-compare-arrows",
            may=escalations.user_can_read,
            waiting=open_disagreements,
            counted="open",
        ),
    ),
    "Trail": (
        Page(route="ledger:executions", label="Audit", icon="scroll-text", may=ledger.user_can_read_trail),
        Page(route="escalations:decisions", label="Decisions", icon="scale", may=escalations.user_can_read),
    ),
    "Run": (
        Page(
            route="outbox:messages",
            label="Outbox",
            icon="send",
            may=outbox.user_can_browse_outbox,
            waiting=troubled_messages,
            counted="need a look",
            hot=True,
        ),
        Page(route="agent:limits", label="Limits", icon="sliders-horizontal", may=agent.user_can_set_limits),
        Page(route="sandbox:objects", label="Stripe sandbox", icon="webhook", may=console.user_can_run_sandbox),
    ),
    "Learn": (
        Page(route="sandbox:story", label="Why a net", icon="book-open", may=agent.user_can_read),
        Page(route="sandbox:break", label="Break it yourself", icon="unlink", may=breaking.user_can_break),
    ),
}


def navigation(request: HttpRequest) -> dict[str, object]:
    """Return the context that every template gets; nothing is counted until a template draws it."""
    return {
        "navigation": SimpleLazyObject(lambda: list(groups(request))),
        "roles": SimpleLazyObject(lambda: ", ".join(sorted(role.capitalize() for role in roles_of(request.user)))),
    }


def groups(request: HttpRequest) -> Iterator[Group]:
    """Yield the groups that hold at least one page this person may open."""
    for title, pages in PAGES.items():
        if found := [link for page in pages if (link := _link(request, page))]:
            yield Group(title=title, links=found)


def _link(request: HttpRequest, page: Page) -> Link | None:
    if not page.may(request.user):
        return None
    try:
        url = reverse(page.route)
    except NoReverseMatch:  # an installation without that app
        return None
    return Link(
        url=url,
        label=page.label,
        icon=page.icon,
        current=request.path.startswith(url),
        count=page.waiting(request.user) if page.waiting else 0,
        counted=page.counted,
        hot=page.hot,
    )
