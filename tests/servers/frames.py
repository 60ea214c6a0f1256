"""Turns a behaviour into the bytes of an OpenAI-compatible answer, encoded once and reused."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.servers.behaviour import GOES_ON, Behaviour, Fault

CREATED = 1_790_000_000
_TEXT = "the old writing can still be read under the new one and nothing that was said is ever gone"


def split_tokens(text: str) -> list[str]:
    """Return the words, each with the white space before it. Joined, they are the text again."""
    return re.findall(r"\s*\S+|\s+", text)


@lru_cache(maxsize=256)
def make_words(count: int) -> str:
    words = _TEXT.split()
    return " ".join(words[index % len(words)] for index in range(count))


def answer_text(behaviour: Behaviour) -> str:
    return make_words(behaviour.tokens) if behaviour.text is None else behaviour.text


def estimate_prompt_tokens(body: Mapping[str, Any]) -> int:
    """Estimate the prompt at four characters per token, plus 765 tokens per image and 4 per message."""
    total = 0
    for message in body.get("messages", ()):
        total += 4 + len(json.dumps(message.get("tool_calls", ""))) // 4
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            total += 765 if part.get("type") == "image_url" else len(part.get("text", "")) // 4
    return total + (len(json.dumps(body["tools"])) // 4 if body.get("tools") else 0)


def frame_bytes(payload: bytes) -> bytes:
    """Return one chunk of a chunked HTTP body."""
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def event_frame(data: Any) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # Send half of a surrogate pair as its JSON escape, as real servers do.
    return frame_bytes(b"data: " + text.encode("utf-8", "backslashreplace") + b"\n\n")


def _chunk(model: str, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


@dataclass(frozen=True, slots=True)
class AnswerFrames:
    """An answer as bytes: `opening` goes before the first token, each of `tokens` is one delta, `closing` ends it."""

    opening: bytes
    tokens: tuple[bytes, ...]
    closing: bytes


@lru_cache(maxsize=256)
def text_frames(text: str, model: str, field: str) -> tuple[bytes, ...]:
    return tuple(event_frame(_chunk(model, {field: token})) for token in split_tokens(text))


def _tool_frames(behaviour: Behaviour, model: str) -> tuple[bytes, ...]:
    frames = []
    for index, call in enumerate(behaviour.tool_calls):
        arguments = call.get("arguments", "{}")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        if call.get("is_whole"):
            # Gemini's endpoint sends parallel calls this way: each in one piece, all at one index and without ids.
            whole = {"index": 0, "type": "function", "function": {"name": call["name"], "arguments": text}}
            frames.append(event_frame(_chunk(model, {"tool_calls": [whole]})))
            continue
        start = {"name": call["name"], "arguments": ""}
        head = {"index": index, "id": call.get("id", f"call_{index}"), "type": "function", "function": start}
        frames.append(event_frame(_chunk(model, {"tool_calls": [head]})))
        for piece in re.findall(r"(?s).{1,12}", text):
            tail = {"index": index, "function": {"arguments": piece}}
            frames.append(event_frame(_chunk(model, {"tool_calls": [tail]})))
    return tuple(frames)


def usage_of(behaviour: Behaviour, body: Mapping[str, Any]) -> dict[str, Any]:
    prompt = behaviour.prompt_tokens if behaviour.prompt_tokens is not None else estimate_prompt_tokens(body)
    completion = len(split_tokens(behaviour.reasoning)) + len(split_tokens(answer_text(behaviour)))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": behaviour.cached_tokens},
    }


def finish_reason(behaviour: Behaviour) -> str:
    return "tool_calls" if behaviour.tool_calls else behaviour.finish_reason


def stream_frames(behaviour: Behaviour, body: Mapping[str, Any]) -> AnswerFrames:
    model = str(body.get("model", "test"))
    tokens: tuple[bytes, ...] = ()
    if behaviour.reasoning:
        tokens += text_frames(behaviour.reasoning, model, behaviour.reasoning_field)
    if not behaviour.tool_calls or behaviour.text:
        tokens += text_frames(answer_text(behaviour), model, "content")
    tokens += _tool_frames(behaviour, model)
    if behaviour.fault in GOES_ON:
        at = behaviour.fault_after
        tokens = (*tokens[:at], _broken_frame(tokens[at], behaviour.fault), *tokens[at + 1 :])
    closing = event_frame(_chunk(model, {}, finish_reason(behaviour)))
    if behaviour.sends_usage and (body.get("stream_options") or {}).get("include_usage"):
        usage = usage_of(behaviour, body) if behaviour.usage is None else behaviour.usage
        chunk = _chunk(model, {}) | {"choices": [], "usage": usage}
        closing += event_frame(chunk)
    opening = event_frame(_chunk(model, {"role": "assistant", "content": ""}))
    return AnswerFrames(opening, tokens, closing + event_frame("[DONE]"))


def _broken_frame(frame: bytes, fault: Fault) -> bytes:
    payload = frame.split(b"\r\n", 1)[1].removeprefix(b"data: ").rstrip()
    at = payload.index(b",") + 1
    if fault == "two_lines":
        return frame_bytes(b"data: %b\ndata: %b\n\n" % (payload[:at], payload[at:]))
    return frame_bytes(b"data: %b\n\n" % payload[: len(payload) // 2])


def completion_body(behaviour: Behaviour, body: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer_text(behaviour)}
    if behaviour.reasoning:
        message[behaviour.reasoning_field] = behaviour.reasoning
    if behaviour.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.get("id", f"call_{index}"),
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call.get("arguments", {}))},
            }
            for index, call in enumerate(behaviour.tool_calls)
        ]
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": CREATED,
        "model": body.get("model", "test"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(behaviour)}],
        "usage": usage_of(behaviour, body),
    }


def _embed(text: str, dimensions: int) -> list[float]:
    """Return a bag of hashed words as a unit vector: texts that share words are near each other."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
        vector[int.from_bytes(digest, "big") % dimensions] += 1.0
    norm = sum(value * value for value in vector) ** 0.5 or 1.0
    return [value / norm for value in vector]


def embeddings_body(body: Mapping[str, Any]) -> dict[str, Any]:
    texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
    vectors = [_embed(text, int(body.get("dimensions") or 64)) for text in texts]
    data = []
    for index, vector in enumerate(vectors):
        packed = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        shown = packed if body.get("encoding_format") == "base64" else vector
        data.append({"object": "embedding", "index": index, "embedding": shown})
    tokens = sum(len(text) // 4 + 1 for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body.get("model", "test"), "data": data, "usage": usage}
