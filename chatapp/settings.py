"""The one place that reads the environment. Defaults run embedded, with no set-up at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url

from agents.hooks import read_hooks
from chatapp.operations import environment as env
from chatapp.operations.mail_settings import mail
from memory.bounds import MAX_RETENTION_DAYS, MAX_TOKENS
from memory.policy import check_written

BASE_DIR = Path(__file__).resolve().parent.parent
DAY_S = 86_400
MAX_BYTES = 2**34
env.load_dotenv()

# Before the first file is created, which may be the key.
env.create_files_private()
DATA_DIR = env.writable_folder("DATA_DIR", BASE_DIR / "data")
SECRET_KEY = env.secret_key(DATA_DIR / "secret_key")
DEBUG = env.flag("DEBUG", False)
HOST = env.host("HOST", "127.0.0.1")
PORT = env.number("PORT", 8000, 0, 65_535)
PUBLIC_URL = env.origin("PUBLIC_URL")
ALLOWED_HOSTS = env.allowed_hosts("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
if own_host := urlsplit(PUBLIC_URL).hostname:
    ALLOWED_HOSTS.append(f"[{own_host}]" if ":" in own_host else own_host)
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL] if PUBLIC_URL else []
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")  # addresses or networks whose X-Forwarded-For is believed
# Open connections of one address whose user is not known yet; a signed-in socket does not count, nor a trusted proxy.
CONNECTIONS_PER_ADDRESS = env.number("CONNECTIONS_PER_ADDRESS", 256, 1, 1_000_000)
# As far as the settings can tell. A proxy on this machine looks like a program on this machine.
IS_BEHIND_PROXY = bool(PUBLIC_URL or TRUSTED_PROXIES or set(ALLOWED_HOSTS) - env.LOOPBACK_HOSTS)
DRAIN_TIMEOUT_S = env.number("DRAIN_TIMEOUT_S", 8, 0, DAY_S)  # how long answers may go on after SIGTERM

# --- What the product is set to --------------------------------------------------------------------
# What operators may change in the admin panel, without a restart. Code asks `operations.changeable_settings` for these.
CHANGEABLE: dict[str, Callable[[], Any]] = {
    "SIGNUP": lambda: env.choice("SIGNUP", "closed", ("open", "invite", "closed")),
    "RETENTION_DAYS": lambda: env.number("RETENTION_DAYS", 30, 0, MAX_RETENTION_DAYS),
    # How long deleted conversations can be restored; 0 = not at all.
    "TRASH_DAYS": lambda: env.number("TRASH_DAYS", 30, 0, MAX_RETENTION_DAYS),
    # What answers may use where no agent says otherwise; "none" for nothing.
    "DEFAULT_TOOLS": lambda: env.tool_names(
        "DEFAULT_TOOLS",
        "memory_search memory_read conversation_search files_list files_read offloaded_page offloaded_grep "
        "offloaded_view_image http_fetch clock calculator",
    ),
    # http_fetch is off until a host is named: docs.python.org, *.wikipedia.org, or * for all public ones.
    "HTTP_FETCH_HOSTS": lambda: env.host_rules("HTTP_FETCH_HOSTS"),
    # On your own network: wiki.example:8080.
    "HTTP_FETCH_OWN_HOSTS": lambda: env.host_rules("HTTP_FETCH_OWN_HOSTS"),
    # How many presets each user may make.
    "MAX_OWN_AGENTS": lambda: env.number("MAX_OWN_AGENTS", 20, 0, 10_000),
    "EMAIL_URL": lambda: mail("EMAIL_URL", may_print=DEBUG),
}
SIGNUP: str = CHANGEABLE["SIGNUP"]()
RETENTION_DAYS: int = CHANGEABLE["RETENTION_DAYS"]()
TRASH_DAYS: int = CHANGEABLE["TRASH_DAYS"]()
DEFAULT_TOOLS: list[str] = CHANGEABLE["DEFAULT_TOOLS"]()
HTTP_FETCH_HOSTS: list[str] = CHANGEABLE["HTTP_FETCH_HOSTS"]()
HTTP_FETCH_OWN_HOSTS: list[str] = CHANGEABLE["HTTP_FETCH_OWN_HOSTS"]()
MAX_OWN_AGENTS: int = CHANGEABLE["MAX_OWN_AGENTS"]()
# Single sign-on at any OpenID Connect issuer; its redirect address is PUBLIC_URL/accounts/oidc/sso/login/callback/.
OIDC_ISSUER = env.url("OIDC_ISSUER")
OIDC_CLIENT_ID = env.line("OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = env.secret("OIDC_CLIENT_SECRET")
OIDC_NAME = env.line("OIDC_NAME", "single sign-on")
OIDC_SCOPES = env.line("OIDC_SCOPES", "openid profile email")
OIDC_GROUPS_CLAIM = env.line("OIDC_GROUPS_CLAIM")  # the claim that names groups; empty: they are kept here
OIDC_MAKES_ACCOUNTS = env.flag("OIDC_MAKES_ACCOUNTS", True)  # whatever SIGNUP says
# Its addresses count as checked though it does not say `email_verified`.
OIDC_TRUSTS_ADDRESSES = env.flag("OIDC_TRUSTS_ADDRESSES", False)
if OIDC_ISSUER and not OIDC_CLIENT_ID:
    env.refuse("OIDC_CLIENT_ID", "is missing: OIDC_ISSUER needs it.")
if OIDC_ISSUER and "openid" not in OIDC_SCOPES.split():
    env.refuse("OIDC_SCOPES", "must name openid: without it the issuer does not say who somebody is.")
# Whether admins may read chats in the admin panel: users are told, and the audit log has each look.
OPERATORS_READ_CHATS = env.flag("OPERATORS_READ_CHATS", False)
ENABLE_COMPACTION = env.flag("ENABLE_COMPACTION", True)
# For the whole deployment, below models and agents.
CONTEXT_POLICY = env.json_object("CONTEXT_POLICY", lambda fields: check_written("environment", fields))
# For every conversation, before those of its agent and its own.
HOOKS = env.json_objects("HOOKS", lambda hooks: read_hooks(hooks, "environment"))
# Where webhooks may lead: * for all public addresses; nowhere for "none".
WEBHOOK_HOSTS = env.host_rules("WEBHOOK_HOSTS", "*")
WEBHOOK_OWN_HOSTS = env.host_rules("WEBHOOK_OWN_HOSTS")  # on your own network: hooks.example:8080
# Dotted names of tools of your own, each as agents/tools/protocol.py says.
EXTRA_TOOLS = env.dotted_names("EXTRA_TOOLS")
# Dotted name of the class that keeps what is too large for a context, as memory/protocols.py says.
OFFLOADER = env.dotted_name("OFFLOADER", "chatapp.files.offloads.ConversationOffloads")
# How long a tool call waits for the user's approval.
CONSENT_TIMEOUT_S = env.number("CONSENT_TIMEOUT_S", 300, 1, 30 * DAY_S)
OPENAI_API_KEY = env.secret("OPENAI_API_KEY")
OPENAI_BASE_URL = env.url("OPENAI_BASE_URL")
LLM_MODEL = env.line("LLM_MODEL")
FAST_LLM_MODEL = env.line("FAST_LLM_MODEL")
LLM_CONTEXT_SIZE = env.number("LLM_CONTEXT_SIZE", 0, 0, MAX_TOKENS)
FAST_LLM_CONTEXT_SIZE = env.number("FAST_LLM_CONTEXT_SIZE", 0, 0, MAX_TOKENS)
LLM_MAX_OUTPUT_TOKENS = env.number("LLM_MAX_OUTPUT_TOKENS", 0, 0, MAX_TOKENS)
OLLAMA_URL = env.url("OLLAMA_URL", "http://127.0.0.1:11434/v1")
MODEL_CONNECT_TIMEOUT_S = env.number("MODEL_CONNECT_TIMEOUT_S", 10, 1, DAY_S)
MODEL_FIRST_TOKEN_TIMEOUT_S = env.number("MODEL_FIRST_TOKEN_TIMEOUT_S", 120, 1, DAY_S)
MODEL_STALL_TIMEOUT_S = env.number("MODEL_STALL_TIMEOUT_S", 60, 1, DAY_S)
# What one answer may take and hold, whatever its model does; agents may have a shorter time.
ANSWER_TIME_LIMIT_S = env.number("ANSWER_TIME_LIMIT_S", 1_800, 1, DAY_S)
MAX_ANSWER_BYTES = env.number("MAX_ANSWER_BYTES", 4 * 2**20, 1, MAX_BYTES)

MAX_REQUEST_BYTES = env.number("MAX_REQUEST_BYTES", 64 * 2**20, 1_024, MAX_BYTES)
MAX_FRAME_BYTES = env.number("MAX_FRAME_BYTES", 2**20, 1_024, MAX_BYTES)
MAX_UPLOAD_BYTES = env.number("MAX_UPLOAD_BYTES", 20 * 2**20, 1, MAX_BYTES)
MAX_STORED_BYTES = env.number("MAX_STORED_BYTES", 2 * 2**30, 0, 2**50)  # uploads of one user; 0: no limit
CONNECTIONS_PER_USER = env.number(
    "CONNECTIONS_PER_USER", 100, 1, 1_000_000
)  # sockets and event streams, per process
FRAMES_PER_MINUTE = env.number("FRAMES_PER_MINUTE", 1_200, 0, 10_000_000)  # of one socket; 0: no limit
MAX_MESSAGE_CHARS = env.number("MAX_MESSAGE_CHARS", 1_000_000, 1, MAX_BYTES)
MAX_IMAGE_PIXELS = env.number("MAX_IMAGE_PIXELS", 40_000_000, 1, 2**31 - 1)
MESSAGES_PER_MINUTE = env.number("MESSAGES_PER_MINUTE", 120, 0, 10_000_000)  # 0: no limit

# How long a process that died holds what it was doing; it says three times as often that it lives.
LEASE_S = env.number("LEASE_S", 30, 1, DAY_S)
HEARTBEAT_S = LEASE_S / 3
# How often somebody looks for what it left, and for what the broker lost.
SWEEP_S = min(10.0, HEARTBEAT_S)
# How often an open stream or socket is asked whether its user may still read.
SSE_HEARTBEAT_S = env.number("SSE_HEARTBEAT_S", 15, 1, DAY_S)
SOCKET_CHECK_S = env.number("SOCKET_CHECK_S", 10, 1, DAY_S)

# Vectors beside the words of the search; empty: the words alone, which is good.
EMBEDDINGS_BASE_URL = env.url("EMBEDDINGS_BASE_URL")
EMBEDDINGS_MODEL = env.line("EMBEDDINGS_MODEL")
EMBEDDINGS_API_KEY = env.secret("EMBEDDINGS_API_KEY")

# --- Where things are kept -------------------------------------------------------------------------
S3_BUCKET = env.line("S3_BUCKET")  # for what agents offload; empty: the data folder
S3_ENDPOINT_URL = env.url("S3_ENDPOINT_URL")
S3_REGION = env.line("S3_REGION", "us-east-1")
S3_ACCESS_KEY_ID = env.secret("S3_ACCESS_KEY_ID")
S3_SECRET_ACCESS_KEY = env.secret("S3_SECRET_ACCESS_KEY")
# Whether a pooler such as PgBouncer gives each transaction another connection: then nothing is left on one.
TRANSACTION_POOLER = env.flag("TRANSACTION_POOLER", False)
REDIS_URL = env.redis_url("REDIS_URL")
EMBEDDED = not REDIS_URL
_sqlite = f"sqlite:///{DATA_DIR / 'palimpsest.sqlite3'}"
DATABASES: dict[str, dict[str, Any]] = {
    "default": env.database("DATABASE_URL", _sqlite, dj_database_url.parse)
}
_database = DATABASES["default"]
if _database["ENGINE"].endswith("sqlite3"):
    _database["ENGINE"] = "chatapp.operations.sqlite3"
    # DEFERRED, the default, upgrades its lock in mid-transaction and fails with "database is locked".
    _database["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        # At a power cut NORMAL would lose answered commits. secure_delete overwrites what is deleted.
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; "
        "PRAGMA secure_delete=ON;",
    }
    _database["CONN_MAX_AGE"] = 0  # the backend keeps them
    _database["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}  # threads need one file, not :memory:
else:
    from chatapp.operations import postgresql  # its library is slow to import, and not used with SQLite

    _database["OPTIONS"] = {
        **postgresql.PARAMETERS,
        **_database.get("OPTIONS", {}),
        "prepare_threshold": None if TRANSACTION_POOLER else postgresql.PREPARED_AT,
        "pool": postgresql.POOL,
    }
    # Such a cursor is on one connection, and the next transaction may get another.
    _database["DISABLE_SERVER_SIDE_CURSORS"] = TRANSACTION_POOLER
    _database["CONN_MAX_AGE"] = 0  # the pool keeps them
    _database["CONN_HEALTH_CHECKS"] = True  # a restarted server costs nobody a request
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": (
        # By default 100: what comes after is lost to a slow reader, without an error.
        {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 2000}}
        if EMBEDDED
        else {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            # Without a time-out of its own redis-py 8 closes every idle socket after 5 s.
            "CONFIG": {
                "hosts": [{"address": REDIS_URL, "socket_timeout": None}],
                # Redis publishes to all of its databases, among them that of a copy of this installation.
                "prefix": f"palimpsest.{int(urlsplit(REDIS_URL).path.strip('/') or 0)}",
            },
        }
    )
}
CACHES = {
    "default": (
        {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            # By default 300: guesses at other accounts would push out what is counted of one.
            "OPTIONS": {"MAX_ENTRIES": 100_000},
        }
        if EMBEDDED
        else {"BACKEND": "chatapp.operations.cache.SharedCache", "LOCATION": REDIS_URL}
    )
}

CELERY_BROKER_URL = REDIS_URL or "memory://localhost/"
# In memory the default looks for tasks once a second. What takes longer than this, Redis gives out again.
CELERY_BROKER_TRANSPORT_OPTIONS = {"polling_interval": 0.1} if EMBEDDED else {"visibility_timeout": 3600}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A task that is acknowledged at its start is lost with a worker that is killed.
CELERY_TASK_ACKS_LATE = True
# Nobody asks for results: what a task does is in rows.
CELERY_TASK_IGNORE_RESULT = True
# What a worker has fetched ahead waits behind its long task, though others are free.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "palimpsest"
CELERY_BEAT_SCHEDULER = "chatapp.operations.beat:SteadyScheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat-schedule")
# What expires would pile up while no worker runs; an old one finds nothing that the latest does not.
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "chatapp.operations.tasks.sweep", "schedule": SWEEP_S, "options": {"expires": 60}},
    "titles": {
        "task": "chatapp.features.titles.tasks.wake_waiting",
        "schedule": SWEEP_S,
        "options": {"expires": 60},
    },
    "webhooks": {
        "task": "chatapp.features.webhooks.tasks.wake_waiting",
        "schedule": SWEEP_S,
        "options": {"expires": 60},
    },
    "imports": {
        "task": "chatapp.features.importing.tasks.wake_waiting",
        "schedule": SWEEP_S,
        "options": {"expires": 60},
    },
    "clean-up": {"task": "chatapp.operations.tasks.clean_up", "schedule": 3600.0},
    "consolidate": {
        "task": "chatapp.long_term.tasks.consolidate_due",
        "schedule": 900.0,
        "options": {"expires": 900},
    },
}

# --- Django ----------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "chatapp.operations.apps.PalimpsestAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "django.contrib.staticfiles",
    "channels",
    "ninja",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "chatapp.operations.apps.ChatappConfig",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "chatapp.operations.security_headers.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    # Behind authentication: it asks what the user chose.
    "chatapp.operations.http.language.page_language",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
]
ROOT_URLCONF = "chatapp.urls"
ASGI_APPLICATION = "chatapp.operations.serving.asgi.application"
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
                "chatapp.operations.views.product_context",
                "chatapp.operations.frontend.front_end_context",
            ],
            "libraries": {"translations": "chatapp.operations.translations"},
        },
    }
]
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "中文")]
LOCALE_PATHS = [BASE_DIR / "templates" / "locale"]
USE_THOUSAND_SEPARATOR = True  # in pages; a template writes `|unlocalize` where a program reads the number
FORMAT_MODULE_PATH = ["chatapp.operations.formats"]
USE_TZ = True
TIME_ZONE = "UTC"

AUTH_USER_MODEL = "chatapp.User"
SILENCED_SYSTEM_CHECKS = ["auth.W004"]  # email addresses are unique whatever their case, by a constraint
AUTHENTICATION_BACKENDS = ["chatapp.accounts.sign_in.BoundedBackend"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "chatapp.accounts.passwords.LengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_ADAPTER = "chatapp.accounts.sign_in.AccountAdapter"
# Adding or changing addresses and second factors asks for the password, unless it was entered in the last minutes.
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
ACCOUNT_FORMS = {
    "add_email": "chatapp.accounts.sign_in.AddressForm",
    "login": "chatapp.accounts.sign_in.SignInForm",
    "signup": "chatapp.accounts.invitations.signing_up.SignUpForm",
}
SOCIALACCOUNT_ADAPTER = "chatapp.accounts.single_sign_on.SingleSignOnAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
# A link, not a form: our policy lets no form end at another site, which is where an issuer redirects to.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "SCOPE": OIDC_SCOPES.split(),
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "sso",
                "name": OIDC_NAME,
                "client_id": OIDC_CLIENT_ID,
                "secret": OIDC_CLIENT_SECRET,
                "settings": {"server_url": OIDC_ISSUER},
            }
        ]
        if OIDC_ISSUER
        else [],
    }
}
MFA_ADAPTER = "chatapp.accounts.sign_in.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Palimpsest"
MFA_TOTP_TOLERANCE = 1  # a clock may be half a minute wrong
MFA_ALLOW_UNVERIFIED_EMAIL = True  # where no mail is sent, no address is ever confirmed
# Browsers refuse passkeys over HTTP themselves, but for localhost.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not PUBLIC_URL.startswith("https://")
USERSESSIONS_ADAPTER = "chatapp.accounts.sign_in.SessionsAdapter"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
USERSESSIONS_TRACK_ACTIVITY = False  # would be a write to disk at every request
# Without an EMAIL_URL no mail is sent, and nothing is offered that needs one: a mail's link belongs in no log.
_mail = CHANGEABLE["EMAIL_URL"]()
HAS_MAIL = bool(_mail.backend)
EMAIL_BACKEND = _mail.backend or "django.core.mail.backends.dummy.EmailBackend"
EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
EMAIL_USE_SSL, EMAIL_USE_TLS = _mail.use_ssl, _mail.use_starttls
# Django's default waits for ever for a server that does not answer.
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = _mail.sender

STATIC_URL = "/static/"
STATIC_ROOT = Path(env.line("STATIC_ROOT", str(BASE_DIR / "staticfiles")))
STATICFILES_DIRS = [("app", BASE_DIR / "static" / "app")]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "chatapp.operations.frontend.HashedStaticFiles",
        # Public, and perhaps served by another account.
        "OPTIONS": {"file_permissions_mode": 0o644, "directory_permissions_mode": 0o755},
    },
}
NODE_MODULES_DIR = BASE_DIR / "static" / "node_modules"
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "chatapp.operations.frontend.NodeModulesFinder",
    "chatapp.operations.frontend.BundleFinder",
]

_secure = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _secure
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
DEVICE_COOKIE_NAME = "device"
if _secure:
    # Browsers take such a cookie over TLS alone, for this host alone: no neighbour under the same domain can set it.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
    DEVICE_COOKIE_NAME = "__Host-device"
    SECURE_HSTS_SECONDS = 365 * DAY_S
# Our server removes this header unless a trusted proxy sent it.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _secure else None
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# Django's own 2.5 MB would refuse what the server has let in.
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_REQUEST_BYTES
FILE_UPLOAD_TEMP_DIR = None

LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
LOG_FORMAT = env.choice("LOG_FORMAT", "plain", ("plain", "json"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "chatapp.operations.logs.build_formatter", "is_json": LOG_FORMAT == "json"}
    },
    "filters": {
        "outages": {"()": "chatapp.operations.logs.OutageLines"},
        "answers": {"()": "chatapp.operations.logs.LevelsOfAnswers"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["outages"]}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        "django.channels.server": {"level": "WARNING"},
        "django.request": {"filters": ["answers"]},
        "daphne": {"level": "WARNING"},
        "celery": {"level": "WARNING" if EMBEDDED else LOG_LEVEL},
        "psycopg.pool": {"level": "ERROR"},
        "httpx2": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},
    },
}

env.refuse_wrong_values()
