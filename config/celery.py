"""The Celery application. A task is a doorbell: the row it points to is the work."""

from celery import Celery

app = Celery("backstop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
