"""The limits page: the kill switch and the per-call limits, for admins."""

import structlog
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from agent import rulebook
from agent.forms import LimitForm, SwitchForm
from agent.permissions import check_user_can_set_limits
from ledger import connections
from ledger.roles import needs

log = structlog.get_logger()


@require_safe
@needs(check_user_can_set_limits)
def limits(request: HttpRequest) -> HttpResponse:
    """Show what is set, by whom and why."""
    return _draw(request)


@require_POST
@needs(check_user_can_set_limits)
def pause(request: HttpRequest) -> HttpResponse:
    """Pause all writes, or let them go on."""
    form = SwitchForm(request.POST)
    if not form.is_valid():
        return _draw(request, switch_form=form, status=422)
    paused, reason = form.cleaned_data["paused"], form.cleaned_data["reason"]
    with connections.writing() as conn:
        rulebook.switch(conn, paused=paused, reason=reason, user=int(request.user.pk))
    log.warning("agent.writes.paused" if paused else "agent.writes.allowed", user=request.user.pk)
    messages.success(request, "All writes are paused." if paused else "Writes go on.")
    return redirect("agent:limits")


@require_POST
@needs(check_user_can_set_limits)
def set_limit(request: HttpRequest) -> HttpResponse:
    """Set one tool's limit."""
    form = LimitForm(request.POST, tools=[tool.name for tool in rulebook.limited()])
    if not form.is_valid():
        return _draw(request, limit_form=form, status=422)
    tool, value, reason = (form.cleaned_data[name] for name in ("tool", "value", "reason"))
    with connections.writing() as conn:
        rulebook.set_limit(conn, tool=tool, value=value, reason=reason, user=int(request.user.pk))
    log.warning("agent.limit.set", tool=tool, value=value, user=request.user.pk)
    now = "has no limit now" if value is None else f"is held above {value:,} minor units now"
    messages.success(request, f"{tool} {now}.")
    return redirect("agent:limits")


def _draw(
    request: HttpRequest, *, switch_form: SwitchForm | None = None, limit_form: LimitForm | None = None, status: int = 200
) -> HttpResponse:
    context = {
        "paused": rulebook.pause(),
        "limits": rulebook.limits(),
        "history": rulebook.history(),
        "switch_form": switch_form or SwitchForm(),
        "limit_form": limit_form,
    }
    return render(request, "agent/limits.html", context, status=status)
