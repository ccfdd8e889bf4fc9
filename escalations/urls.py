"""Routes of the review desk."""

from django.urls import path

from escalations import views

app_name = "escalations"
urlpatterns = [
    path("escalations/", views.inbox_page, name="inbox"),
    path("escalations/next/", views.claim_next, name="claim_next"),
    path("escalations/<int:pk>/", views.escalation, name="escalation"),
    path("escalations/<int:pk>/result/", views.result, name="result"),
    path("escalations/<int:pk>/claim/", views.claim, name="claim"),
    path("escalations/<int:pk>/release/", views.release, name="release"),
    path("escalations/<int:pk>/decide/", views.decide, name="decide"),
    path("escalations/<int:pk>/run/", views.run_again, name="run"),
    path("decisions/", views.decisions, name="decisions"),
]
