"""The ASGI entry point for uvicorn."""

import os
import sys
import warnings
from typing import Any

from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured

# WhiteNoise gives a static file as a synchronous iterator, which Django reads at once: ours are small.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
try:
    pages = get_asgi_application()
except ImproperlyConfigured as fault:  # whoever starts it needs the sentences, not our stack
    sys.exit(str(fault))

from config import checks, readiness  # noqa: E402  # need the applications

checks.stop_unless_safe()


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request, or the server's questions about its own life, which Django does not answer."""
    if scope["type"] == "lifespan":
        await readiness.lifespan(receive, send)
    else:
        await pages(scope, receive, send)
