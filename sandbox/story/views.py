"""The page that shows both tellings side by side."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from agent.permissions import check_user_can_read, check_user_can_talk, user_can_talk
from ledger.permissions import user_can_read_trail
from ledger.roles import needs
from sandbox.breaking.permissions import user_can_break
from sandbox.story import real, records, script
from sandbox.story.script import Telling


@require_safe
@needs(check_user_can_read)
def story(request: HttpRequest) -> HttpResponse:
    """Show what a stock agent did with the story's message, and what this one did."""
    conversation = real.newest()
    naive = records.load(directory=settings.DATA_DIR)
    ours = real.tell(conversation) if conversation else None
    ended = conversation is not None and real.is_answered(conversation) and not real.waits(conversation)
    context: dict[str, Any] = {
        "naive": naive,
        "ours": ours,
        "conversation": conversation,
        "ended": ended,
        "waits": conversation is not None and real.waits(conversation),
        "rows": _rows(naive, ours if ended else None),
        "message": ours.message if ours else real.planned(),
        "can_tell": user_can_talk(request.user),
        "can_see_evidence": user_can_read_trail(request.user),
        "can_break": user_can_break(request.user),
    }
    return render(request, "sandbox/story.html", context)


@require_POST
@needs(check_user_can_talk)
def tell(request: HttpRequest) -> HttpResponse:
    """Send the story's message in a new conversation and go there."""
    try:
        conversation = real.begin(request.user)
    except real.CannotTell as reason:
        messages.error(request, str(reason))
        return redirect("sandbox:story")
    return redirect("agent:conversation", conversation.pk)


def _rows(naive: Telling | None, ours: Telling | None) -> list[dict[str, Any]]:
    """Return the comparison: what was asked for, and how often each did it."""
    return [
        {
            "what": what,
            "asked": getattr(script.ASKED, name),
            "naive": getattr(naive.counts, name) if naive else None,
            "ours": getattr(ours.counts, name) if ours else None,
        }
        for name, what in (
            ("memos", "Credit memos"),
            ("deductions", "Deductions from the balance"),
            ("refunds", "Refunds to the card"),
        )
    ]
