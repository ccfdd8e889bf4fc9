"""Routes of the chat, its stream, its API and the limits."""

from django.urls import path

from agent import api, interventions, limits, stream, views

app_name = "agent"
urlpatterns = [
    path("conversations/", views.conversations, name="conversations"),
    path("conversations/new/", views.new, name="new"),
    path("conversations/<int:pk>/", views.conversation, name="conversation"),
    path("conversations/<int:pk>/feed/", views.feed, name="feed"),
    path("conversations/<int:pk>/stream/", stream.stream, name="stream"),
    path("conversations/<int:pk>/send/", views.send, name="send"),
    path("conversations/<int:pk>/edit/", views.edit, name="edit"),
    path("conversations/<int:pk>/cancel/", views.cancel, name="cancel"),
    path("conversations/<int:pk>/stop/", views.stop, name="stop"),
    path("conversations/<int:pk>/resume/", views.resume, name="resume"),
    path("conversations/<int:pk>/withdraw/", interventions.withdraw, name="withdraw"),
    path("conversations/<int:pk>/undo/", interventions.undo, name="undo"),
    path("conversations/<int:pk>/step-in/", interventions.step_in, name="step_in"),
    path("conversations/<int:pk>/say/", interventions.say, name="say"),
    path("conversations/<int:pk>/hand-back/", interventions.hand_back, name="hand_back"),
    path("limits/", limits.limits, name="limits"),
    path("limits/pause/", limits.pause, name="pause"),
    path("limits/send-after/", limits.send_after, name="send_after"),
    path("limits/rate/", limits.rate, name="rate"),
    path("limits/requests/<int:pk>/", limits.answer_request, name="answer_request"),
    path("limits/<slug:rule>/", limits.limit, name="limit"),
    path("limits/<slug:rule>/set/", limits.set_limit, name="set_limit"),
    path("api/conversations/", api.conversations, name="api_conversations"),
    path("api/conversations/<int:pk>/", api.conversation, name="api_conversation"),
    path("api/conversations/<int:pk>/messages/", api.messages, name="api_messages"),
    path("api/conversations/<int:pk>/stop/", api.stop, name="api_stop"),
    path("api/conversations/<int:pk>/resume/", api.resume, name="api_resume"),
    path("api/conversations/<int:pk>/withdraw/", api.withdraw, name="api_withdraw"),
    path("api/conversations/<int:pk>/undo/", api.undo, name="api_undo"),
    path("api/conversations/<int:pk>/step-in/", api.step_in, name="api_step_in"),
    path("api/conversations/<int:pk>/say/", api.say, name="api_say"),
    path("api/conversations/<int:pk>/hand-back/", api.hand_back, name="api_hand_back"),
]
