"""Turns what a provider answered into a ModelError: one category, and one sentence a user can act on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agents.errors import ModelError, ModelErrorCategory
from agents.overflow import Overflow, find_overflow

MAX_DETAIL_CHARS = 600

_SENTENCES: dict[ModelErrorCategory, str] = {
    "auth": "The model provider does not accept our key; your message is stored. An administrator must check the key "
    "of this model, then press Retry.",
    "not_found": "The provider does not know this model or address; your message is stored. Choose another model, or "
    "ask an administrator to check this one's name and address.",
    "rate_limit": "The provider is getting too many requests right now; your message is stored. Wait a little, then "
    "press Retry.",
    "quota": "The provider's account has no credit or budget left; your message is stored. An administrator must top "
    "it up, or you can choose another model.",
    "overflow": "The conversation is larger than this model can take, even after it was shortened; your message is "
    "stored. Send a shorter message or choose a model with a larger context.",
    "bad_request": "The provider refused the request; your message is stored. Retry, or choose another model if it "
    "happens again.",
    "server": "The provider had a failure of its own; your message is stored. Press Retry in a moment.",
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


def describe_error(category: ModelErrorCategory, detail: str = "", **facts: Any) -> ModelError:
    """The error of a category with its standing sentence."""
    return ModelError(category, _SENTENCES[category], detail=detail[:MAX_DETAIL_CHARS], **facts)


def map_error(status: int | None, body: object, headers: Mapping[str, str] | None = None) -> ModelError:
    """From an answered error. `body` is the parsed JSON or the raw text; `status` None where it came in a stream."""
    text = read_error_text(body)
    overflow = _find_overflow(status, text)
    category = "overflow" if overflow else _categorize(status, text)
    error = describe_error(
        category,
        text,
        status=status,
        retry_after_s=_read_retry_after(headers or {}, text)
        if category in ("rate_limit", "server")
        else None,
        window_tokens=overflow.window_tokens if overflow else None,
    )
    return error


def _find_overflow(status: int | None, text: str) -> Overflow | None:
    # 401 to 404 say something else, whatever their words; 429 may carry an overflow's (some gateways do).
    if status in (401, 402, 403, 404):
        return None
    overflow = find_overflow(text)
    if overflow is None and status == 413 and not (_RATE.search(text) or _QUOTA.search(text)):
        return Overflow()
    return overflow


def _categorize(status: int | None, text: str) -> ModelErrorCategory:
    """Words first where they are surer than the number: an empty account is a 429 with some, a 403 with others."""
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
        return "not_found"
    if status is None or status >= 500 or _BUSY.search(text):
        return "server"
    return "bad_request"


def read_error_text(body: object) -> str:
    """The provider's words, whatever they are wrapped in; all fields that a judgement may need are kept."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        return _read_text(body)
    if isinstance(body, Mapping):
        inner = body.get("error", body.get("detail", body))
        if isinstance(inner, Mapping):
            return _join_fields(inner)
        return read_error_text(inner) if inner is not body else json.dumps(body)
    if isinstance(body, list):
        return " ".join(read_error_text(item) for item in body)
    return "" if body is None else str(body)


def _read_text(text: str) -> str:
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        try:
            return read_error_text(json.loads(stripped))
        except ValueError:
            return stripped
    if is_html(stripped):
        title = re.search(r"<(?:title|h1)[^>]*>(.*?)</", stripped, re.IGNORECASE | re.DOTALL)
        return f"HTML page: {title[1].strip()}" if title else "HTML page"
    return stripped


def _join_fields(error: Mapping[str, Any]) -> str:
    message = error.get("message") or error.get("msg") or error.get("error") or ""
    words = message if isinstance(message, str) else json.dumps(message)
    names = ("code", "type", "status", "param", "n_ctx", "n_prompt_tokens")
    facts = [f"{name}: {error[name]}" for name in names if error.get(name) is not None]
    # OpenRouter keeps the words of the provider behind it in metadata.raw.
    metadata = error.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("raw"):
        words = f"{words}: {read_error_text(metadata['raw'])}"
    joined = f"{words} ({', '.join(facts)})" if facts else words
    return joined or json.dumps(error, default=str)


def is_html(text: str) -> bool:
    return bool(re.match(r"\s*<(?:!doctype|html|head|body)", text, re.IGNORECASE))


def _read_retry_after(headers: Mapping[str, str], text: str) -> float | None:
    """Seconds until the provider wants to be asked again, from its header or its words."""
    milliseconds = headers.get("retry-after-ms", "")
    if milliseconds.replace(".", "", 1).isdigit():
        return float(milliseconds) / 1000
    seconds = headers.get("retry-after", "")
    if seconds.replace(".", "", 1).isdigit():
        return float(seconds)
    found = re.search(r"try again in (?:(\d+)m)?(\d+(?:\.\d+)?)(ms|s)\b", text)
    if not found:
        return None
    value = float(found[2]) / (1000 if found[3] == "ms" else 1)
    return value + 60 * int(found[1] or 0)
