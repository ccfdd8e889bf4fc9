"""Routes: the frame's own, then each app's."""

from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path

from config import errors, pages

APPS = ("agent", "escalations", "ledger", "outbox", "sandbox")

urlpatterns: list[URLPattern | URLResolver] = [
    path("", pages.home, name="home"),
    path("login/", pages.Login.as_view(), name="login"),
    path("logout/", pages.Logout.as_view(), name="logout"),
    path("healthz", pages.healthz, name="healthz"),
    *[path("", include(f"{app}.urls")) for app in APPS if find_spec(f"{app}.urls")],
]

handler400 = errors.bad_request
handler403 = errors.forbidden
handler404 = errors.not_found
handler500 = errors.broken
