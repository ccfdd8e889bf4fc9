"""The one settings file. Everything that differs between machines comes from the environment,
else from the instance that `manage.py up` started (see config/instance.py)."""

import os
from pathlib import Path

from config import addresses, env, instance
from config.plugs import *  # noqa: F403 - settings too
from config.schedule import *  # noqa: F403 - settings too

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = instance.data_directory()

# -- what kind of run this is ------------------------------------------------------------------
PRODUCTION = env.text("BACKSTOP_ENV", "development") == "production"
# The database login of this process: owner, web, agent, outbox or keeper; beat has none.
LOGIN = env.text("BACKSTOP_LOGIN", "web")

# Fault points that strike on purpose (ledger/faults.py), and how long the action `sleep` lasts.
FAULT, FAULT_SECONDS = env.text("BACKSTOP_FAULT", ""), env.number("BACKSTOP_FAULT_SECONDS", 5)

if PRODUCTION:
    env.forbid({"BACKSTOP_FAULT": "it makes processes fail on purpose"})
    env.insist(
        {
            "DJANGO_SECRET_KEY": ("give it a long random value", instance.value("secret_key")),
            "ALLOWED_HOSTS": ("name the hosts that this installation answers to", None),
            "DATABASE_URL": (
                f"give the address of PostgreSQL with the login {LOGIN}",
                LOGIN == "beat" or instance.value("database", LOGIN),
            ),
            "REDIS_URL": ("give the address of a Redis-compatible broker", instance.value("broker")),
        }
    )

# -- core --------------------------------------------------------------------------------------
DEBUG = False
SECRET_KEY = env.text("DJANGO_SECRET_KEY", instance.value("secret_key") or "only-for-tests-and-checks")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "" if PRODUCTION else "localhost,127.0.0.1,[::1],testserver")
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
FORM_RENDERER = "django.forms.renderers.DjangoTemplates"
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "axes",
    "rest_framework",
    "config",
    "ledger",
    "outbox",
    "escalations",
    "agent",
    "billing",
    "sandbox",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "config.errors.Frame",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "config.entry.LoginRequired",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.navigation.navigation",
            ],
            "builtins": ["config.templatetags.frame"],
        },
    },
]

# -- database and broker -----------------------------------------------------------------------
# `transaction` when the database is reached through a transaction-pooling proxy.
POOLER = env.text("BACKSTOP_POOLER", "none")
DATABASE_URL = env.text("DATABASE_URL", instance.value("database", LOGIN) or "")
POOL_SIZE = env.number("BACKSTOP_POOL_SIZE", 20)
DATABASES = {"default": addresses.database(url=DATABASE_URL, pooler=POOLER, pooled=LOGIN == "web")}
REDIS_URL = env.text("REDIS_URL", instance.value("broker") or "redis://127.0.0.1:6379/0")

# -- people ------------------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_CALLABLE = "config.errors.locked_out"
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "config.errors.csrf_failure"

# -- browser safety ----------------------------------------------------------------------------
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "manifest-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "object-src": ["'none'"],
    },
}
if PRODUCTION:
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
    SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", True)
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.flag("BEHIND_TLS_PROXY") else None
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True

# -- static files, language, time --------------------------------------------------------------
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = DATA_DIR / "static" if PRODUCTION else None  # else served from where they are
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not PRODUCTION  # a page follows an edited file at once
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage",
    },
}
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
# The installation's zone: a "customer-day" and every time on a page are in it.
TIME_ZONE = env.text("BACKSTOP_TIME_ZONE", "UTC")

# -- Celery: the broker rings bells, the rows are the work (docs/adr) --------------------------
# Celery has its own words for a broker behind a socket.
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://").replace("?db=", "?virtual_host=")
CELERY_TASK_IGNORE_RESULT = True
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 5,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
    "health_check_interval": 25,
}
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat-schedule")

# -- the agent ---------------------------------------------------------------------------------
# Such as "anthropic:claude-sonnet-5"; empty means the offline stand-in.
BACKSTOP_MODEL = os.environ.get("BACKSTOP_MODEL", "")
BACKSTOP_MODEL_BASE_URL = os.environ.get("BACKSTOP_MODEL_BASE_URL", "")
BACKSTOP_TRACE_FAILED_CALL = env.flag("BACKSTOP_TRACE_FAILED_CALL")
LEASE_SECONDS = env.number("BACKSTOP_LEASE_SECONDS", 30)
HEARTBEAT_SECONDS = env.number("BACKSTOP_HEARTBEAT_SECONDS", 10)

# -- the provider: only the outbox login reads the key, only web and outbox the webhook secret ---
STRIPE_API_KEY = env.text("STRIPE_API_KEY", instance.value("stripe", "api_key") or "") if LOGIN == "outbox" else ""
STRIPE_API_BASE = env.text("STRIPE_API_BASE", instance.value("stripe", "api_base") or "https://api.stripe.com")
# Seconds: to connect, and between two bytes of an answer; far below the outbox's lease.
STRIPE_TIMEOUTS = (3, env.number("BACKSTOP_STRIPE_TIMEOUT", 20))
STRIPE_API_VERSION = "2026-10-28.endive"  # frozen into each message: a re-send must not change
BACKSTOP_RATES = env.rates("BACKSTOP_RATES")  # of each destination that must not be asked too often; no other is slowed
# Of which mode the key is: events of the other one are refused, by a process that must not have the key.
STRIPE_MODE = env.choice("STRIPE_MODE", ("live", "test"), "test" if instance.value("stripe", "api_key") else "")
STRIPE_WEBHOOK_SECRETS = env.words("STRIPE_WEBHOOK_SECRETS", instance.value("stripe", "webhook_secret") or "")

# -- telling reviewers: by e-mail, and by a chat's incoming webhook whose address only outbox reads; both through the outbox
HERE = f"http://{instance.value('web', 'host') or '127.0.0.1'}:{instance.value('web', 'port') or 8000}"
BACKSTOP_PUBLIC_URL = env.text("BACKSTOP_PUBLIC_URL", HERE).rstrip("/")
BACKSTOP_NOTIFY_EMAIL = env.words("BACKSTOP_NOTIFY_EMAIL", "desk@backstop.invalid" if instance.value("logins") else "")
BACKSTOP_NOTIFY_CHAT = env.flag("BACKSTOP_NOTIFY_CHAT")
BACKSTOP_NOTIFY_WEBHOOK = env.text("BACKSTOP_NOTIFY_WEBHOOK", "") if LOGIN == "outbox" else ""
BACKSTOP_MAIL_DOMAIN = env.text("BACKSTOP_MAIL_DOMAIN", "backstop.invalid")
DEFAULT_FROM_EMAIL = env.text("BACKSTOP_EMAIL_FROM", f"Backstop <desk@{BACKSTOP_MAIL_DOMAIN}>")
EMAIL_HOST, EMAIL_PORT = env.text("EMAIL_HOST", ""), env.number("EMAIL_PORT", 587)
EMAIL_USE_TLS, EMAIL_TIMEOUT, EMAIL_HOST_USER = env.flag("EMAIL_USE_TLS", True), 20, env.text("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD", "") if LOGIN == "outbox" else ""
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'filebased'}.EmailBackend"
EMAIL_FILE_PATH = DATA_DIR / "mail"  # without a mail server, e-mail is written into files that a person can open

# -- API ---------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["config.parsers.StrictJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.CursorPagination",
    "PAGE_SIZE": 50,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}

# -- logs --------------------------------------------------------------------------------------
LOGGING_CONFIG = "config.logs.configure"
LOGGING = {"level": env.text("BACKSTOP_LOG_LEVEL", "INFO")}
SILENCED_SYSTEM_CHECKS: list[str] = []
