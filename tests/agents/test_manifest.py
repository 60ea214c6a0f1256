"""The request as it was sent: by reference where that is enough, and the same to the byte when it is built again."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.chat_models.openai_model import OpenAIModel
from agents.manifest import OwnText, StoredSpan, hash_body, rebuild_body, write_manifest
from agents.types import ModelRequest, RequestSent, ToolSpec, WireStyle
from agents.wire import write_request
from memory.tokens import text_message, with_parts
from memory.types import ImagePart, Message, TextPart
from tests.agents.asking import SYSTEM, ask_for, history_of
from tests.memory.histories import histories
from tests.servers.behaviour import Behaviour
from tests.servers.openai_server import ModelServer

TOOL = ToolSpec("clock", "Tells the time.", {"type": "object", "properties": {"zone": {"type": "string"}}})


def sent(*messages: Message, style: WireStyle = WireStyle()) -> RequestSent:
    request = ModelRequest((SYSTEM, *messages), 100, tools=(TOOL,))
    return RequestSent(request, {"model": "m"} | write_request(request, style) | {"max_tokens": 100}, style)


def test_what_is_stored_is_named_by_its_positions_and_all_else_is_kept() -> None:
    history = history_of(6)
    cut = with_parts(history[1], (TextPart("Half of it [Truncated]"),))
    manifest = write_manifest(sent(history[0], cut, *history[2:]), history)
    assert [type(piece).__name__ for piece in manifest.pieces] == ["OwnText", "StoredSpan", "OwnText", "StoredSpan"]
    assert manifest.pieces[2] == OwnText("history", cut)
    assert manifest.pieces[3] == StoredSpan("history", 2, 5)


def test_an_image_is_named_by_its_file_and_never_kept() -> None:
    stored = Message("user", (ImagePart("f1", "image/png"),), 800, id="m0", position=0)
    seen = replace(stored, parts=(ImagePart("f1", "image/png", data_url="data:image/png;base64,AAAA"),))
    manifest = write_manifest(sent(seen), [stored])
    assert manifest.pieces[1] == StoredSpan("history", 0, 0)


@settings(max_examples=60, deadline=None)
@given(histories(), st.booleans(), st.booleans())
def test_a_request_built_again_has_the_same_bytes(history: list[Message], merges: bool, system: bool) -> None:
    request = sent(*history, style=WireStyle(merges_roles=merges, has_system=system))
    manifest = write_manifest(request, history)
    stored = {message.position: message for message in history}
    messages = [
        message
        for piece in manifest.pieces
        for message in (
            [piece.message]
            if isinstance(piece, OwnText)
            else [stored[at] for at in range(piece.first_position, piece.last_position + 1)]
        )
    ]
    body = rebuild_body(manifest.head, messages, manifest.tools, manifest.style)
    assert body == request.body
    assert hash_body(body) == manifest.sha256


async def test_the_hash_is_that_of_the_bytes_the_server_got(server: ModelServer, model: OpenAIModel) -> None:
    server.defaults["chat"] = Behaviour(text="fine", error_if_field="temperature")
    request = replace(ask_for("Grüße, 世界 🌍", text_message("user", "Before")), temperature=0.5, tools=(TOOL,))
    bodies = [item.body async for item in model.stream(request) if isinstance(item, RequestSent)]
    arrived = server.requests_of("chat")
    assert [hash_body(body) for body in bodies] == [request.sha256 for request in arrived]
    assert ["temperature" in body for body in bodies] == [True, False]
