"""Examples for the API's description: a body for common operations, an error for each status."""

from __future__ import annotations

from typing import Any

BODY_EXAMPLES: dict[str, Any] = {
    "createConversation": {"title": "A trip to Lisbon"},
    "updateConversation": {"pinned": True},
    "importConversation": {
        "title": "A trip to Lisbon",
        "messages": [
            {"role": "user", "content": "We fly on 3 May.", "created_at": "2026-03-01T09:00:00Z"},
            {"role": "assistant", "content": "Noted."},
        ],
    },
    "sendMessage": {"content": "When do we fly?", "stream": False},
    "editMessage": {"content": "When do we fly back?"},
    "regenerateMessage": {"stream": False},
    "injectMessage": {"content": "In the afternoon, I mean."},
    "inspectContext": {"query": "When do we fly?"},
    "compactConversation": {"keep": "names and dates", "wait": True},
    "createToken": {"name": "my script", "scopes": ["chat", "read"]},
    "createMemoryEntry": {"text": "We fly to Lisbon on 3 May."},
    "updateMemoryEntry": {"text": "We fly to Lisbon on 4 May.", "revision": 1},
    "createWebhook": {"url": "https://example.com/hook", "events": ["message.completed"]},
    "updateMe": {"time_zone": "Europe/Lisbon"},
}
ERROR_EXAMPLES: dict[int, tuple[str, str]] = {
    400: ("malformed", "The body is not valid JSON."),
    401: ("unauthorized", "Sign in, or send an API token as `Authorization: Bearer <token>`."),
    403: ("insufficient_scope", "This needs a token with the scope chat."),
    404: ("not_found", "This does not exist, or it belongs to another user."),
    409: ("run_active", "An answer is still being written here. Stop it or wait for its end."),
    413: ("too_large", "The request is larger than this service accepts."),
    422: ("invalid", "content: Field required"),
    429: ("rate_limited", "You are sending messages faster than this service accepts. Please wait 2 s."),
    500: ("internal", "Something went wrong on our side; it was logged. Please try again."),
    502: ("model_error", "The provider had an internal error; your message is stored."),
    503: ("unavailable", "The database is not available right now. Please try again."),
    504: ("model_error", "The model did not begin to answer in time; your message is stored."),
}
