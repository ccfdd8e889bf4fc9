"""The ASGI entry point for uvicorn."""

import os
import sys
import warnings

from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured

# WhiteNoise gives a static file as a synchronous iterator, which Django reads at once: ours are small.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
try:
    application = get_asgi_application()
except ImproperlyConfigured as fault:  # whoever starts it needs the sentences, not our stack
    sys.exit(str(fault))

from config import checks  # noqa: E402  # needs the applications

checks.stop_unless_safe()
