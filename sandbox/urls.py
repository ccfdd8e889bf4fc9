"""Routes of the sandbox."""

from django.urls import path

from sandbox.breaking import views as breaking
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
]
