"""Map a provider's error response to a ModelError: a category, a sentence a user can act on, and redacted words.

No other module may build an error from a provider's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agents.chat_models.overflow import Overflow, find_overflow, is_message_too_long
from agents.errors import ModelError, ModelErrorCategory

MAX_WORDS_CHARS = 600
MAX_READ_CHARS = 5_000
"""Limit for an error's text. Its beginning decides the category, and the patterns below must not scan megabytes."""
LEAST_SECRET_CHARS = 4
MESSAGE_TOO_LONG = (
    "One message is longer than this provider accepts; your message is stored. Send it in shorter parts or as a file, "
    "or choose another model."
)

_SENTENCES: dict[ModelErrorCategory, str] = {
    "auth": "The model provider does not accept our key; your message is stored. An administrator must check the key "
    "of this model, then press Retry.",
    "not_found": "The provider does not know this model or address; your message is stored. Choose another model, or "
    "ask an administrator to check this one's name and address.",
    "rate_limit": "The provider is getting too many requests right now; your message is stored. Wait a little, then "
    "press Retry.",
    "quota": "The provider's account has no credit or budget left; your message is stored. An administrator must top "
    "it up, or you can choose another model.",
    "budget": "The spending budget is used up; your message is stored. Press Retry when it is renewed, "
    "or ask an administrator.",
    "overflow": "The conversation is larger than this model can take, even after it was shortened; your message is "
    "stored. Send a shorter message or choose a model with a larger context.",
    "bad_request": "The provider refused the request; your message is stored. Retry, or choose another model if it "
    "happens again.",
    "server": "The provider had an internal error; your message is stored. Press Retry in a moment.",
    "timeout": "The model did not begin to answer in time; your message is stored. Press Retry, or choose another "
    "model.",
    "stalled": "The model stopped in the middle of its answer; what it wrote so far is kept. Press Continue or Retry.",
    "cut": "The connection to the model broke before the answer was finished; what it wrote so far is kept. Press "
    "Continue or Retry.",
    "bad_response": "The provider sent something that is not an answer; your message is stored. Press Retry; if it "
    "happens again, an administrator should check this model's address.",
    "connection": "The model's server cannot be reached; your message is stored. Check that it is running, then press "
    "Retry.",
    "bound": "The model wrote more than one answer may hold and was stopped; your message is stored. Press Retry, or "
    "choose another model.",
    "content_filter": "The provider's content filter withheld the answer; your message is stored. Rephrase it, or "
    "choose another model.",
}

_QUOTA = re.compile(
    r"insufficient[ _](?:quota|balance|credit|funds)|exceeded your current quota|billing|out of credits?"
    r"|requires more credits|can only afford|credit balance|payment required|spending limit|budget.{0,20}exceeded"
    r"|account.{0,40}(?:suspended|arrears|overdue)|余额不足|欠费",
    re.IGNORECASE,
)
_AUTH = re.compile(
    r"(?:invalid|incorrect|missing|wrong|expired)[ _](?:x-)?api[ _-]?key|unauthori[sz]ed", re.IGNORECASE
)
_NO_MODEL = re.compile(
    r"model[`'\" :_\w./-]{0,80}(?:not found|does not exist|not exist|is not (?:available|supported))|model_not_found"
    r"|no such model|unknown model|not a valid model",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"rate[ _-]?limit|too many (?:concurrent )?requests|per[ -]minute|throttl|\b[TR]PM\b", re.IGNORECASE
)
_FILTER = re.compile(
    r"content[ _](?:filter|policy|management)|responsible.?ai|data_inspection_failed|safety system|content violat",
    re.IGNORECASE,
)
_BUSY = re.compile(r"overloaded|no capacity|temporarily unavailable|loading model", re.IGNORECASE)


def describe_error(
    category: ModelErrorCategory,
    words: str = "",
    *,
    detail: str = "",
    status: int | None = None,
    secrets: Iterable[str] = (),
    **facts: Any,
) -> ModelError:
    """Return the error of a category with its sentence. `words` is the text of the provider or of a library, from which
    `secrets`, known keys, are removed."""
    return ModelError(
        category,
        _SENTENCES[category],
        detail=detail or (f"HTTP {status}" if status else ""),
        provider_words=redact_words(words, secrets),
        status=status,
        **facts,
    )


def map_error(
    status: int | None,
    body: object,
    headers: Mapping[str, str] | None = None,
    *,
    secrets: Iterable[str] = (),
) -> ModelError:
    """Return the ModelError for an error response.

    `body` is the parsed JSON or the raw text; `status` is None for an error inside a stream; `secrets` are known keys.
    """
    text = read_error_text(body)
    overflow = _find_overflow(status, text)
    category = "overflow" if overflow else _categorize(status, text)
    is_temporary = category in ("rate_limit", "server")
    error = describe_error(
        category,
        text,
        status=status,
        secrets=secrets,
        retry_after_s=_read_retry_after(headers or {}, text) if is_temporary else None,
        window_tokens=overflow.window_tokens if overflow else None,
    )
    if category == "bad_request" and is_message_too_long(text):
        error.message = MESSAGE_TOO_LONG
        # str() of an exception uses its arguments.
        error.args = (MESSAGE_TOO_LONG,)
    return error


# --- redaction: a provider's text may repeat keys, addresses and names of internal hosts

_HIDDEN = "[…]"
_ADDRESSES = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>]+"
    r"|\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|(?<![\w:])\[?(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}\]?(?::\d+)?(?!\w)"
    r"|\blocalhost(?::\d+)?\b"
    # A host with a port, but not `max_tokens:4096` or `length:2048`.
    r"|(?<![\w.-])(?![a-z-]*(?:tokens?|length|limit|size|count):)[a-z0-9](?:[a-z0-9-]*\.)*[a-z0-9-]+:\d{2,5}\b"
    r"|\b[a-z0-9](?:[\w-]{0,62}\.){1,8}(?:internal|intranet|intra|local|localdomain|lan|corp|home|svc|cluster|private|test"
    r"|com|net|org|io|ai|dev|cloud|app|cn|eu|de|fr|uk|us)\b"
    r"|(?:/[\w.-]+){3,}",
    re.IGNORECASE,
)
_SECRETS = re.compile(
    r"\bbearer\s+\S+"
    r"|\b(?:sk|pk|rk|gsk|hf|xai|nvapi|r8|ghp|glpat|AIza|AKIA|eyJ)[\w.*-]{6,}"
    r"|[\w-]*\*{3,}[\w*-]*"
    r"|(?<=[\s:='\"])(?=\S*\d)(?=\S*[a-z])[\w+/=-]{32,}",
    re.IGNORECASE,
)
_NAMED_SECRETS = re.compile(
    r"((?:api[ _-]?key|key|token|secret|password|authorization)(?: provided)?[\"']?\s*[:=]\s*[\"']?)[^\s\"',;)]+",
    re.IGNORECASE,
)


def redact_words(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the beginning of the text without keys, addresses, hosts and paths; `secrets` are known keys."""
    # Replace secrets before the text is truncated, because half of a key would not be found.
    for secret in secrets:
        # A shorter secret may occur in ordinary words.
        if len(secret) >= LEAST_SECRET_CHARS:
            text = text.replace(secret, _HIDDEN)
    text = _NAMED_SECRETS.sub(rf"\1{_HIDDEN}", text[: 2 * MAX_WORDS_CHARS])
    text = _ADDRESSES.sub(_HIDDEN, _SECRETS.sub(_HIDDEN, text))
    return text[:MAX_WORDS_CHARS]


# --- choosing the category


def _find_overflow(status: int | None, text: str) -> Overflow | None:
    # 401 to 404 have other causes, whatever the text; 429 may be an overflow, because some gateways send it.
    if status in (401, 402, 403, 404):
        return None
    overflow = find_overflow(text)
    # Some providers send 413 for too many tokens per minute.
    if overflow is None and status == 413 and not (_RATE.search(text) or _QUOTA.search(text)):
        return Overflow()
    return overflow


def _categorize(status: int | None, text: str) -> ModelErrorCategory:
    """Return the category. The text comes first: some providers send 429 for an empty account, others 403."""
    # Rate limit errors may link to the billing page.
    if status == 402 or (_QUOTA.search(text) and not _RATE.search(text)):
        return "quota"
    if status == 401 or _AUTH.search(text):
        return "auth"
    if status == 429 or _RATE.search(text):
        return "quota" if "insufficient_quota" in text else "rate_limit"
    if _FILTER.search(text):
        return "content_filter"
    if status == 404 or _NO_MODEL.search(text):
        return "not_found"
    if status == 403:
        return "auth"
    if status in (408, 504):
        return "timeout"
    if status is not None and 300 <= status < 400:
        # Redirects are not followed, so the configured address is wrong.
        return "not_found"
    if status is None or status >= 500 or _BUSY.search(text):
        return "server"
    return "bad_request"


def read_error_text(body: object) -> str:
    """Return the provider's text, unwrapped, with all fields that decide the category."""
    try:
        return _read_body(body)[:MAX_READ_CHARS]
    except (RecursionError, ValueError):  # nested too deep, or a number of thousands of digits
        return ""


def _read_body(body: object) -> str:
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        return _read_text(body)
    if isinstance(body, Mapping):
        inner = body.get("error", body.get("detail", body))
        if isinstance(inner, Mapping):
            return _join_fields(inner)
        return _read_body(inner) if inner is not body else json.dumps(body)
    if isinstance(body, list):
        return " ".join(_read_body(item) for item in body)
    return "" if body is None else str(body)


def _read_text(text: str) -> str:
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        try:
            return _read_body(json.loads(stripped))
        except ValueError:
            return stripped
    if is_html(stripped):
        title = re.search(r"<(?:title|h1)[^<>]*>([^<]*)", stripped[:MAX_READ_CHARS], re.IGNORECASE)
        return f"HTML page: {title[1].strip()}" if title else "HTML page"
    return stripped


def _join_fields(error: Mapping[str, Any]) -> str:
    message = error.get("message") or error.get("msg") or error.get("error") or ""
    words = message if isinstance(message, str) else json.dumps(message)
    names = ("code", "type", "status", "param", "n_ctx", "n_prompt_tokens")
    facts = [f"{name}: {error[name]}" for name in names if error.get(name) is not None]
    # OpenRouter puts the upstream provider's text in metadata.raw.
    metadata = error.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("raw"):
        words = f"{words}: {_read_body(metadata['raw'])}"
    joined = f"{words} ({', '.join(facts)})" if facts else words
    return joined or json.dumps(error, default=str)


def is_html(text: str) -> bool:
    """Return whether the text is an HTML page, such as proxies send."""
    return bool(re.match(r"\s*<(?:!doctype|html|head|body)", text, re.IGNORECASE))


_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def _read_retry_after(headers: Mapping[str, str], text: str) -> float | None:
    """Return the seconds that the provider asks to wait, from its headers or its text; None if it does not say."""
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _SECONDS.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    asked = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(asked):
        return float(asked)
    if (until := _read_date(asked)) is not None:
        # Use the provider's own clock if it sends the time: ours may be wrong.
        now = _read_date(headers.get("date", "")) or datetime.now(UTC)
        seconds = (until - now).total_seconds()
        return seconds if seconds > 0 else None
    found = re.search(r"try again in (?:([0-9]{1,6})m)?([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s)\b", text)
    if not found:
        return None
    value = float(found[2]) / (1000 if found[3] == "ms" else 1)
    return value + 60 * int(found[1] or 0)


def _read_date(text: str) -> datetime | None:
    """Return the time of an HTTP date; None if the text is not one."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
