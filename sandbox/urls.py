"""Routes of the sandbox."""

from django.urls import path

from sandbox.story import views

app_name = "sandbox"
urlpatterns = [path("story/", views.story, name="story"), path("story/tell/", views.tell, name="tell")]
