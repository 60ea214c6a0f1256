"""Requests as they were sent: stored mostly by reference and rebuilt to the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.chat_models.openai_model import OpenAIModel
from agents.chat_models.wire import encode_body, write_request
from agents.requests.manifest import (
    Manifest,
    OwnText,
    ShownPiece,
    StoredSpan,
    dump_manifest,
    hash_body,
    read_manifest,
    rebuild_body,
    show_pieces,
    write_manifest,
)
from agents.requests.references import Segment, Sources, read_references
from agents.types import ModelRequest, RequestSent, ToolSpec, WireStyle
from memory.tokens import text_message, with_parts
from memory.types import ImagePart, Message, TextPart
from tests.agents.asking import SYSTEM, ask_for, history_of
from tests.memory.histories import histories
from tests.servers.behaviour import Behaviour
from tests.servers.openai_server import ModelServer

NO_SOURCES = Sources({})
TOOL = ToolSpec("clock", "Tells the time.", {"type": "object", "properties": {"zone": {"type": "string"}}})
HISTORY = history_of(6)
CUT = with_parts(HISTORY[1], (TextPart("Half of it [Truncated]"),))


def sent(*messages: Message, style: WireStyle = WireStyle()) -> RequestSent:
    request = ModelRequest((SYSTEM, *messages), 100, tools=(TOOL,))
    body = {"model": "m"} | write_request(request, style) | {"max_tokens": 100}
    return RequestSent(request, body, encode_body(body), style)


@dataclass
class Shown:
    body: dict[str, Any]
    pieces: tuple[ShownPiece, ...]
    is_verified: bool


def shown_again(
    request: RequestSent, stored: Sequence[Message], *, without: str = "", data_urls: Mapping[str, str] = {}
) -> Shown:
    """Rebuild the request from its stored manifest. Texts of the source `without` are missing, as if forgotten."""
    manifest, texts = written(request, stored)
    manifest = read_manifest(dump_manifest(manifest))
    return shown_from(manifest, stored, kept(texts, without), data_urls)


def written(request: RequestSent, stored: Sequence[Message]) -> tuple[Manifest, dict[OwnText, list[Segment]]]:
    return write_manifest(request, stored, lambda: NO_SOURCES)


def kept(texts: Mapping[OwnText, list[Segment]], without: str = "") -> dict[str, str]:
    return {
        own.text_sha256: read_references(text, {}) for own, text in texts.items() if own.source != without
    }


def shown_from(
    manifest: Manifest, stored: Sequence[Message], texts: Mapping[str, str], data_urls: Mapping[str, str] = {}
) -> Shown:
    by_position = {message.position: message for message in stored if message.position is not None}
    pieces = show_pieces(manifest, by_position, texts)
    body = rebuild_body(manifest, pieces, texts, data_urls)
    return Shown(body, pieces, hash_body(body) == manifest.sha256)


def test_stored_messages_are_referenced_by_position_and_all_other_text_is_kept_once() -> None:
    manifest, texts = written(sent(HISTORY[0], CUT, *HISTORY[2:]), HISTORY)
    system, first, cut, rest = manifest.pieces
    assert (first, rest) == (StoredSpan("history", 0, 0), StoredSpan("history", 2, 5))
    assert [own.source for own in (system, cut) if isinstance(own, OwnText)] == ["system", "history"]
    assert {own.source for own in texts} == {"system", "history", "tools"}
    assert not any(message.text in text for text in kept(texts).values() for message in HISTORY)


def test_an_image_is_referenced_by_its_file_and_its_bytes_are_not_kept() -> None:
    stored = Message("user", (ImagePart("f1", "image/png"),), 800, id="m0", position=0)
    url = "data:image/png;base64,AAAA"
    request = sent(replace(stored, parts=(replace(stored.parts[0], data_url=url),)))
    manifest, texts = written(request, [stored])
    assert manifest.pieces[1] == StoredSpan("history", 0, 0)
    assert not any("AAAA" in text for text in kept(texts).values())
    assert shown_again(request, [stored], data_urls={"f1": url}).body == request.body
    assert not shown_again(request, [stored]).is_verified


def test_deleted_and_forgotten_pieces_are_marked_as_such() -> None:
    forgotten = shown_again(sent(*HISTORY), HISTORY, without="system")
    assert [piece.state for piece in forgotten.pieces] == ["forgotten", *["sent"] * 6]
    manifest, texts = written(sent(*HISTORY), HISTORY)
    deleted = shown_from(manifest, HISTORY[:1], kept(texts))
    assert [piece.state for piece in deleted.pieces] == ["sent", "sent", *["deleted"] * 5]
    assert [piece.message.position for piece in deleted.pieces[2:]] == [1, 2, 3, 4, 5]
    assert not forgotten.is_verified
    assert not deleted.is_verified


@pytest.mark.mechanism("ours.sent-requests")
@settings(max_examples=30, deadline=None)
@given(histories(), st.booleans(), st.booleans())
def test_a_rebuilt_request_has_the_same_bytes(history: list[Message], merges: bool, system: bool) -> None:
    request = sent(*history, style=WireStyle(merges_roles=merges, has_system=system))
    shown = shown_again(request, history)
    assert shown.body == request.body
    assert list(shown.body) == list(request.body)
    assert shown.is_verified


@pytest.mark.mechanism("ours.sent-requests")
async def test_the_hash_matches_the_bytes_that_the_server_received(
    server: ModelServer, model: OpenAIModel
) -> None:
    server.defaults["chat"] = Behaviour(text="fine", error_if_field="temperature")
    request = replace(
        ask_for("Grüße, 世界 🌍", text_message("user", "Before")), temperature=0.5, tools=(TOOL,)
    )
    bodies = [item.body async for item in model.stream(request) if isinstance(item, RequestSent)]
    assert [hash_body(body) for body in bodies] == [asked.sha256 for asked in server.requests_of("chat")]
    assert ["temperature" in body for body in bodies] == [True, False]


def test_an_edited_answer_in_a_request_of_an_earlier_version_is_history() -> None:
    manifest = Manifest("0" * 64, {"model": "m"}, WireStyle(), (StoredSpan("edited", 3, 3),))
    assert read_manifest(dump_manifest(manifest)).pieces == (StoredSpan("history", 3, 3),)
