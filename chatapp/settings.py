"""Reads all settings from the environment. With the defaults, the service runs embedded and needs no set-up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url

from agents.loop.hooks import read_hooks
from chatapp.operations.configuration import environment as env
from chatapp.operations.configuration.mail_settings import mail
from memory.bounds import MAX_RETENTION_DAYS, MAX_TOKENS
from memory.window.policy import check_written

BASE_DIR = Path(__file__).resolve().parent.parent
DAY_S = 86_400
MAX_BYTES = 2**34
env.load_dotenv()

# Set the umask before the first file is created, which may be the secret key.
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
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")  # addresses or networks whose X-Forwarded-For is trusted
# Open connections per client address, without signed-in sockets. Trusted proxies are not limited.
CONNECTIONS_PER_ADDRESS = env.number("CONNECTIONS_PER_ADDRESS", 256, 1, 1_000_000)
# Inferred from the settings, because a proxy on this machine looks like any other local client.
IS_BEHIND_PROXY = bool(PUBLIC_URL or TRUSTED_PROXIES or set(ALLOWED_HOSTS) - env.LOOPBACK_HOSTS)
# How long running answers may continue after SIGTERM.
DRAIN_TIMEOUT_S = env.number("DRAIN_TIMEOUT_S", 8, 0, DAY_S)

# --- Product settings ------------------------------------------------------------------------------
# Operators can change these in the admin panel without a restart. Read them with `current` of
# `operations/configuration/changeable_settings.py`.
CHANGEABLE: dict[str, Callable[[], Any]] = {
    "SIGNUP": lambda: env.choice("SIGNUP", "closed", ("open", "invite", "closed")),
    "RETENTION_DAYS": lambda: env.number("RETENTION_DAYS", 30, 0, MAX_RETENTION_DAYS),
    # How long deleted conversations can be restored; 0: not at all.
    "TRASH_DAYS": lambda: env.number("TRASH_DAYS", 30, 0, MAX_RETENTION_DAYS),
    # Tools that answers may use unless their agent specifies others; "none" means no tools.
    "DEFAULT_TOOLS": lambda: env.tool_names(
        "DEFAULT_TOOLS",
        "memory_search memory_read conversation_search files_list files_read offloaded_page offloaded_grep "
        "offloaded_view_image http_fetch clock calculator",
    ),
    # http_fetch is off until a host is listed, e.g. docs.python.org, *.wikipedia.org, or * for all public hosts.
    "HTTP_FETCH_HOSTS": lambda: env.host_rules("HTTP_FETCH_HOSTS"),
    # Hosts of your own network, e.g. wiki.example:8080.
    "HTTP_FETCH_OWN_HOSTS": lambda: env.host_rules("HTTP_FETCH_OWN_HOSTS"),
    # The maximum number of presets per user.
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
# Single sign-on with any OpenID Connect issuer. The redirect URI is PUBLIC_URL/accounts/oidc/sso/login/callback/.
OIDC_ISSUER = env.url("OIDC_ISSUER")
OIDC_CLIENT_ID = env.line("OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = env.secret("OIDC_CLIENT_SECRET")
OIDC_NAME = env.line("OIDC_NAME", "single sign-on")
OIDC_SCOPES = env.line("OIDC_SCOPES", "openid profile email")
OIDC_GROUPS_CLAIM = env.line("OIDC_GROUPS_CLAIM")  # the claim that lists groups; empty: managed here
OIDC_MAKES_ACCOUNTS = env.flag("OIDC_MAKES_ACCOUNTS", True)  # regardless of SIGNUP
# Treat the issuer's email addresses as verified even without `email_verified`.
OIDC_TRUSTS_ADDRESSES = env.flag("OIDC_TRUSTS_ADDRESSES", False)
if OIDC_ISSUER and not OIDC_CLIENT_ID:
    env.refuse("OIDC_CLIENT_ID", "is missing: OIDC_ISSUER needs it.")
if OIDC_ISSUER and "openid" not in OIDC_SCOPES.split():
    env.refuse("OIDC_SCOPES", "must include openid, or the issuer does not identify the user.")
# Whether admins may read chats in the admin panel. Users are informed, and the audit log records each access.
OPERATORS_READ_CHATS = env.flag("OPERATORS_READ_CHATS", False)
ENABLE_COMPACTION = env.flag("ENABLE_COMPACTION", True)
# The policy of the deployment. Models, agents and conversations override it.
CONTEXT_POLICY: dict[str, Any] = env.json_value(
    "CONTEXT_POLICY", {}, lambda fields: check_written("environment", fields)
)
# Hooks of every conversation. They precede those of its agent and its own.
HOOKS: list[dict[str, Any]] = env.json_value("HOOKS", [], lambda hooks: read_hooks(hooks, "environment"))
# Hosts that webhooks may call: * for all public hosts, "none" for no host.
WEBHOOK_HOSTS = env.host_rules("WEBHOOK_HOSTS", "*")
WEBHOOK_OWN_HOSTS = env.host_rules("WEBHOOK_OWN_HOSTS")  # hosts of your own network, e.g. hooks.example:8080
# Dotted names of your own tools, as described in agents/tools/protocol.py.
EXTRA_TOOLS = env.dotted_names("EXTRA_TOOLS")
# Dotted name of the class that stores results too large for a context, as described in memory/protocols.py.
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
# Limits of one answer, whatever its model does. Agents may set a shorter time.
ANSWER_TIME_LIMIT_S = env.number("ANSWER_TIME_LIMIT_S", 1_800, 1, DAY_S)
MAX_ANSWER_BYTES = env.number("MAX_ANSWER_BYTES", 4 * 2**20, 1, MAX_BYTES)

MAX_REQUEST_BYTES = env.number("MAX_REQUEST_BYTES", 64 * 2**20, 1_024, MAX_BYTES)
MAX_FRAME_BYTES = env.number("MAX_FRAME_BYTES", 2**20, 1_024, MAX_BYTES)
MAX_UPLOAD_BYTES = env.number("MAX_UPLOAD_BYTES", 20 * 2**20, 1, MAX_BYTES)
MAX_STORED_BYTES = env.number("MAX_STORED_BYTES", 2 * 2**30, 0, 2**50)  # uploads of one user; 0: no limit
# Open sockets and event streams of one user, per process.
CONNECTIONS_PER_USER = env.number("CONNECTIONS_PER_USER", 100, 1, 1_000_000)
FRAMES_PER_MINUTE = env.number("FRAMES_PER_MINUTE", 1_200, 0, 10_000_000)  # per socket; 0: no limit
MAX_MESSAGE_CHARS = env.number("MAX_MESSAGE_CHARS", 1_000_000, 1, MAX_BYTES)
MAX_IMAGE_PIXELS = env.number("MAX_IMAGE_PIXELS", 40_000_000, 1, 2**31 - 1)
MESSAGES_PER_MINUTE = env.number("MESSAGES_PER_MINUTE", 120, 0, 10_000_000)  # 0: no limit

# How long a dead process keeps the work that it claimed. Living processes send three heartbeats in this time.
LEASE_S = env.number("LEASE_S", 30, 1, DAY_S)
HEARTBEAT_S = LEASE_S / 3
# How often the sweep looks for work of dead processes and for tasks that the broker lost.
SWEEP_S = min(10.0, HEARTBEAT_S)
# How often an open stream or socket checks whether its user may still read.
SSE_HEARTBEAT_S = env.number("SSE_HEARTBEAT_S", 15, 1, DAY_S)
SOCKET_CHECK_S = env.number("SOCKET_CHECK_S", 10, 1, DAY_S)

# Embeddings complement the word search. If empty, search uses words only, which works well.
EMBEDDINGS_BASE_URL = env.url("EMBEDDINGS_BASE_URL")
EMBEDDINGS_MODEL = env.line("EMBEDDINGS_MODEL")
EMBEDDINGS_API_KEY = env.secret("EMBEDDINGS_API_KEY")

# --- Storage ---------------------------------------------------------------------------------------
S3_BUCKET = env.line("S3_BUCKET")  # for offloaded results; empty: the data folder
S3_ENDPOINT_URL = env.url("S3_ENDPOINT_URL")
S3_REGION = env.line("S3_REGION", "us-east-1")
S3_ACCESS_KEY_ID = env.secret("S3_ACCESS_KEY_ID")
S3_SECRET_ACCESS_KEY = env.secret("S3_SECRET_ACCESS_KEY")
# Whether a pooler such as PgBouncer may give each transaction another connection. Then connections keep no state.
TRANSACTION_POOLER = env.flag("TRANSACTION_POOLER", False)
REDIS_URL = env.redis_url("REDIS_URL")
EMBEDDED = not REDIS_URL
_sqlite = f"sqlite:///{DATA_DIR / 'palimpsest.sqlite3'}"
DATABASES: dict[str, dict[str, Any]] = {
    "default": env.database("DATABASE_URL", _sqlite, dj_database_url.parse)
}
_database = DATABASES["default"]
if _database["ENGINE"].endswith("sqlite3"):
    _database["ENGINE"] = "chatapp.operations.database.sqlite3"
    # DEFERRED, the default, upgrades its lock in mid-transaction and fails with "database is locked".
    _database["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        # In a power cut NORMAL could lose acknowledged commits. secure_delete overwrites deleted content.
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; "
        "PRAGMA secure_delete=ON;",
    }
    _database["CONN_MAX_AGE"] = 0  # our backend keeps connections open
    _database["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}  # threads cannot share :memory:
else:
    from chatapp.operations.database import postgresql

    _database["OPTIONS"] = {
        **postgresql.PARAMETERS,
        **_database.get("OPTIONS", {}),
        "prepare_threshold": None if TRANSACTION_POOLER else postgresql.PREPARED_AT,
        "pool": postgresql.POOL,
    }
    # A server-side cursor belongs to one connection, and the next transaction may get another.
    _database["DISABLE_SERVER_SIDE_CURSORS"] = TRANSACTION_POOLER
    _database["CONN_MAX_AGE"] = 0  # the pool keeps connections open
    _database["CONN_HEALTH_CHECKS"] = True  # no request fails after a restart of the server
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": (
        # The default is 100. Messages beyond the capacity are silently dropped for slow readers.
        {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 2000}}
        if EMBEDDED
        else {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            # Without an explicit timeout, redis-py 8 closes every idle socket after 5 s.
            "CONFIG": {
                "hosts": [{"address": REDIS_URL, "socket_timeout": None}],
                # Pub/sub crosses Redis databases, so the prefix separates installations that share a server.
                "prefix": f"palimpsest.{int(urlsplit(REDIS_URL).path.strip('/') or 0)}",
            },
        }
    )
}
CACHES = {
    "default": (
        {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            # The default is 300. Sign-in attempts for other accounts would evict the counters of an account.
            "OPTIONS": {"MAX_ENTRIES": 100_000},
        }
        if EMBEDDED
        else {"BACKEND": "chatapp.operations.caching.redis_cache.SharedCache", "LOCATION": REDIS_URL}
    )
}

CELERY_BROKER_URL = REDIS_URL or "memory://localhost/"
# The in-memory transport polls once a second by default. Redis redelivers tasks that take longer than the timeout.
CELERY_BROKER_TRANSPORT_OPTIONS = {"polling_interval": 0.1} if EMBEDDED else {"visibility_timeout": 3600}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A task acknowledged at its start is lost if its worker is killed.
CELERY_TASK_ACKS_LATE = True
# Nothing reads task results: tasks store their outcome in rows.
CELERY_TASK_IGNORE_RESULT = True
# Prefetched tasks would wait behind a long task while other workers are idle.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "palimpsest"
CELERY_BEAT_SCHEDULER = "chatapp.operations.workers.beat:SteadyScheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat-schedule")
# Without an expiry, these tasks would pile up while no worker runs. The latest one finds all the work.
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    name: {"task": task, "schedule": SWEEP_S, "options": {"expires": 60}}
    for name, task in {
        "sweep": "chatapp.operations.tasks.sweep",
        "titles": "chatapp.features.titles.tasks.wake_waiting",
        "webhooks": "chatapp.features.webhooks.tasks.wake_waiting",
        "imports": "chatapp.features.importing.tasks.wake_waiting",
    }.items()
} | {
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
    "chatapp.operations.http.security_headers.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    # After authentication, because it reads the user's choice.
    "chatapp.operations.http.language.page_language",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
]
ROOT_URLCONF = "chatapp.urls"
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
                "chatapp.operations.http.frontend.front_end_context",
            ],
            "libraries": {"translations": "chatapp.operations.translations"},
        },
    }
]
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "中文")]
LOCALE_PATHS = [BASE_DIR / "templates" / "locale"]
USE_THOUSAND_SEPARATOR = True  # in pages; templates use `|unlocalize` for numbers that programs read
FORMAT_MODULE_PATH = ["chatapp.operations.http.formats"]
TIME_ZONE = "UTC"

AUTH_USER_MODEL = "chatapp.User"
SILENCED_SYSTEM_CHECKS = ["auth.W004"]  # a constraint makes email addresses unique regardless of case
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
# Changing email addresses or second factors needs the password, unless it was entered in the last five minutes.
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
ACCOUNT_FORMS = {
    "add_email": "chatapp.accounts.sign_in.AddressForm",
    "login": "chatapp.accounts.sign_in.SignInForm",
    "signup": "chatapp.accounts.invitations.signing_up.SignUpForm",
}
SOCIALACCOUNT_ADAPTER = "chatapp.accounts.single_sign_on.SingleSignOnAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
# Use a link, not a form: our content security policy blocks forms that redirect to another site, e.g. the issuer.
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
MFA_TOTP_TOLERANCE = 1  # a clock may be off by half a minute
MFA_ALLOW_UNVERIFIED_EMAIL = True  # without mail, no address is ever verified
# Browsers themselves refuse passkeys over HTTP, except on localhost.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not PUBLIC_URL.startswith("https://")
USERSESSIONS_ADAPTER = "chatapp.accounts.sign_in.SessionsAdapter"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
USERSESSIONS_TRACK_ACTIVITY = False  # would write to the disk on every request
# Without EMAIL_URL no mail is sent, and features that need mail are hidden. Links in mails must not appear in a log.
_mail = CHANGEABLE["EMAIL_URL"]()
HAS_MAIL = bool(_mail.backend)
EMAIL_BACKEND = _mail.backend or "django.core.mail.backends.dummy.EmailBackend"
EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
EMAIL_USE_SSL, EMAIL_USE_TLS = _mail.use_ssl, _mail.use_starttls
# By default, Django waits forever for a server that does not respond.
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = _mail.sender

STATIC_URL = "/static/"
STATIC_ROOT = Path(env.line("STATIC_ROOT", str(BASE_DIR / "staticfiles")))
STATICFILES_DIRS = [("app", BASE_DIR / "static" / "app")]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "chatapp.operations.http.frontend.HashedStaticFiles",
        # Static files are public, and a web server of another account may serve them.
        "OPTIONS": {"file_permissions_mode": 0o644, "directory_permissions_mode": 0o755},
    },
}
NODE_MODULES_DIR = BASE_DIR / "static" / "node_modules"
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "chatapp.operations.http.frontend.NodeModulesFinder",
    "chatapp.operations.http.frontend.BundleFinder",
]

_secure = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _secure
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
DEVICE_COOKIE_NAME = "device"
if _secure:
    # Browsers accept `__Host-` cookies only over TLS and only from this host, so no sibling domain can set them.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
    DEVICE_COOKIE_NAME = "__Host-device"
    SECURE_HSTS_SECONDS = 365 * DAY_S
# Our server removes this header unless a trusted proxy sent it.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _secure else None
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# Django's default of 2.5 MB would refuse bodies that our server accepted.
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_REQUEST_BYTES

LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
LOG_FORMAT = env.choice("LOG_FORMAT", "plain", ("plain", "json"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "chatapp.operations.monitoring.logs.build_formatter", "is_json": LOG_FORMAT == "json"}
    },
    "filters": {
        "outages": {"()": "chatapp.operations.monitoring.logs.OutageLines"},
        "answers": {"()": "chatapp.operations.monitoring.logs.ResponseLevelFilter"},
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
