"""What the scripted model server records of a request, and how it recognises a summary request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from memory.summaries.summary_prompts import CLOSING

RequestKind = Literal["chat", "summary", "embeddings", "models", "other"]


@dataclass
class RecordedRequest:
    """A request as received. `times` are wall-clock seconds: arrived, first_token, finished, lost (the client
    disconnected early). `sha256` is the hash of the raw body."""

    path: str
    kind: RequestKind
    body: dict[str, Any]
    headers: dict[str, str]
    times: dict[str, float] = field(default_factory=dict)
    sha256: str = ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", []))

    @property
    def user_messages(self) -> list[dict[str, Any]]:
        """The user's messages without recalled text, which also has the user role but quotes other chats."""
        said = [message for message in self.messages if message["role"] == "user"]
        return [message for message in said if not str(message["content"]).startswith("<recalled>")]

    @property
    def text(self) -> str:
        """All messages as one string, for `in` checks."""
        return json.dumps(self.messages, ensure_ascii=False)


def is_summary_request(body: Mapping[str, Any]) -> bool:
    """Return whether the request has a prompt of `memory.summaries.summary_prompts`, custom ones included."""
    messages = body.get("messages") or [{}]
    return CLOSING in str(messages[0].get("content", ""))
