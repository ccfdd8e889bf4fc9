"""Routes of the audit pages."""

from django.urls import path

from ledger import views

app_name = "ledger"
urlpatterns = [
    path("audit/", views.executions, name="executions"),
    path("audit/attempts/", views.attempts, name="attempts"),
    path("audit/attempts/<uuid:pk>/", views.attempt, name="attempt"),
    path("find/", views.find, name="find"),
]
