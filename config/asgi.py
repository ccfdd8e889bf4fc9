"""The ASGI entry point for uvicorn."""

import os
import warnings

from django.core.asgi import get_asgi_application

# WhiteNoise gives a static file as a synchronous iterator, which Django reads at once: ours are small.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_asgi_application()

from config import checks  # noqa: E402  # needs the applications

checks.stop_unless_safe()
