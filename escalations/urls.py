"""Routes of the review desk."""

from django.urls import path

from escalations import inbox_views
from escalations.reconciling import views as reconcile
from escalations.views import cases, claims, decisions, revisions

app_name = "escalations"
urlpatterns = [
    path("escalations/", inbox_views.inbox_page, name="inbox"),
    path("escalations/tray/", inbox_views.tray, name="tray"),
    path("escalations/next/", inbox_views.next_page, name="next"),
    path("escalations/<int:pk>/", cases.escalation, name="escalation"),
    path("escalations/<int:pk>/result/", cases.result, name="result"),
    path("escalations/<int:pk>/presence/", cases.presence, name="presence"),
    path("escalations/<int:pk>/claim/", claims.claim, name="claim"),
    path("escalations/<int:pk>/release/", claims.release, name="release"),
    path("escalations/<int:pk>/reassign/", claims.reassign, name="reassign"),
    path("escalations/<int:pk>/snooze/", claims.snooze, name="snooze"),
    path("escalations/<int:pk>/wake/", claims.wake, name="wake"),
    path("escalations/<int:pk>/edit/", revisions.edit, name="edit"),
    path("escalations/<int:pk>/drop/", revisions.drop, name="drop"),
    path("escalations/<int:pk>/take-over/", revisions.take_over, name="take_over"),
    path("escalations/<int:pk>/preview/", revisions.preview, name="preview"),
    path("escalations/<int:pk>/decide/", decisions.decide, name="decide"),
    path("escalations/<int:pk>/opens-next/", decisions.opens_next, name="opens_next"),
    path("escalations/<int:pk>/run/", decisions.run_again, name="run"),
    path("decisions/", decisions.decisions, name="decisions"),
    path("reconcile/", reconcile.reconcile, name="reconcile"),
    path("reconcile/scan/", reconcile.scan, name="scan"),
    path("reconcile/<int:pk>/", reconcile.disagreement, name="disagreement"),
    path("reconcile/<int:pk>/look-up/", reconcile.look_up, name="look_up"),
    path("reconcile/<int:pk>/choose/", reconcile.choose, name="choose"),
]
