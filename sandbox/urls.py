"""Routes of the sandbox."""

from django.urls import path

from sandbox.breaking import views as breaking
from sandbox.console import views as console
from sandbox.story import views as story

app_name = "sandbox"
urlpatterns = [
    path("story/", story.story, name="story"),
    path("story/tell/", story.tell, name="tell"),
    path("break/", breaking.newest, name="break"),
    path("break/<int:pk>/", breaking.page, name="broken"),
    path("break/strip/", breaking.strip, name="strip"),
    path("break/ask/", breaking.ask, name="ask"),
    path("break/<slug:name>/", breaking.act, name="act"),
    path("sandbox/", console.objects, name="objects"),
    path("sandbox/money/", console.money, name="money"),
    path("sandbox/faults/", console.faults, name="faults"),
    path("sandbox/faults/add/", console.add_fault, name="add_fault"),
    path("sandbox/faults/lift/", console.lift_fault, name="lift_fault"),
    path("sandbox/faults/limit/", console.set_limit, name="set_limit"),
    path("sandbox/webhooks/", console.webhooks, name="webhooks"),
    path("sandbox/webhooks/behave/", console.behave, name="behave"),
    path("sandbox/webhooks/forge/", console.forge, name="forge"),
    path("sandbox/clock/", console.clock, name="clock"),
    path("sandbox/clock/advance/", console.advance, name="advance"),
    path("sandbox/settle/", console.settle, name="settle"),
]
