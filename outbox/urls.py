"""Routes of the outbox pages and of the provider's events."""

from django.urls import path

from outbox import views

app_name = "outbox"
urlpatterns = [
    path("outbox/", views.messages, name="messages"),
    path("outbox/several/", views.several, name="several"),
    path("outbox/destinations/<slug:name>/resume/", views.resume, name="resume"),
    path("outbox/<int:pk>/", views.message, name="message"),
    path("outbox/<int:pk>/undo/", views.undo, name="undo"),
    path("outbox/<int:pk>/look-up/", views.look_up, name="look_up"),
    path("outbox/<int:pk>/cancel/", views.cancel, name="cancel"),
    path("outbox/<int:pk>/replay/", views.replay, name="replay"),
    path("webhooks/stripe", views.webhook, name="webhook"),
]
