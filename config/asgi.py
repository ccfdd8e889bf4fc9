"""The ASGI entry point for uvicorn."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_asgi_application()

from config import checks  # noqa: E402  # needs the applications

checks.stop_unless_safe()
