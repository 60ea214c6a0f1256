"""Edge cases of numbers, images, documents, search patterns and refusals by providers."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator

import pytest
from PIL import Image, ImageCms

from agents.chat_models import openai_model, prompted_model
from agents.chat_models.error_mapping import map_error
from agents.chat_models.openai_model import OpenAIModel, dialect_of
from agents.chat_models.prompted_model import AutoToolsModel
from agents.tools.calculator import calculate
from agents.tools.offloaded import find_matches
from agents.tools.protocol import ToolFailure
from agents.types import Finished, ModelEndpoint, ModelItem, ModelRequest, TextDelta, ToolSpec
from chatapp.files.documents import read_document
from chatapp.files.images import clean_image
from memory.tokens import text_message

ENDPOINT = ModelEndpoint(model_id="test-model", base_url="https://api.example.com/v1", api_key="")
QUESTION = (text_message("user", "Hi"),)


def test_a_number_with_a_huge_exponent_is_refused() -> None:
    with pytest.raises(ToolFailure):
        calculate("1e99999999999999999999")


def test_a_cleaned_16_bit_greyscale_image_has_no_metadata() -> None:
    buffer = io.BytesIO()
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    Image.new("I;16", (4, 1)).save(buffer, "PNG", icc_profile=profile)
    cleaned = Image.open(io.BytesIO(clean_image(buffer.getvalue(), 1_000).content))
    assert "icc_profile" not in cleaned.info


def test_a_chinese_text_that_begins_like_an_image_is_read_as_text() -> None:
    """The inspected prefix may end within a character."""
    for pad in ("", " ", "  "):
        text = f"GIF89a {pad}" + "图像格式的比较，两者都可以是动画。" * 100
        assert read_document(text.encode(), "notes.txt") is not None, pad


def test_a_bracket_in_a_comment_does_not_hide_nested_counts() -> None:
    """Nested counts must be refused: compiled, this pattern would take memory for 250,000 letters."""
    with pytest.raises(ToolFailure):
        find_matches("text", "(?#[)(?:(?:a{500}){500})(?#])")


def test_a_server_without_temperature_is_detected_even_if_a_tool_has_such_a_parameter() -> None:
    thermostat = ToolSpec(
        "set_heating", "Heat.", {"type": "object", "properties": {"temperature": {"type": "number"}}}
    )
    refusal = "Unsupported value: 'temperature' does not support 0.7 with this model."
    body = json.dumps(
        {"error": {"message": refusal, "type": "invalid_request_error", "param": "temperature"}}
    )
    openai_model._dialects.clear()
    try:
        asked = ModelRequest(QUESTION, 4_000, (thermostat,), temperature=0.7)
        OpenAIModel(ENDPOINT)._adapt(asked, body)
        assert not dialect_of(ENDPOINT).has_temperature, "each request with this tool is refused for ever"
    finally:
        openai_model._dialects.clear()


class Toolless:
    """Answers as Ollama does for a model without tools."""

    name = "test-model"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        if request.tools:
            raise map_error(
                400, {"error": {"message": "registry.ollama.ai/library/gemma does not support tools"}}
            )
        yield TextDelta("Fine.")
        yield Finished("stop")


def test_a_model_without_tools_is_detected_whatever_the_tools_are_called() -> None:
    async def ask() -> list[ModelItem]:
        tool = ToolSpec("support", "Open a ticket.", {"type": "object", "properties": {}})
        request = ModelRequest(QUESTION, 100, (tool,))
        return [item async for item in AutoToolsModel(Toolless(), ("u", "test-model")).stream(request)]

    prompted_model._without_tools.clear()
    try:
        assert asyncio.run(ask())
    finally:
        prompted_model._without_tools.clear()
