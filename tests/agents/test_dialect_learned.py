"""One client's words that a provider repeats in a refusal must not limit the answers of other users."""

from __future__ import annotations

import json

from agents.chat_models import openai_model
from agents.chat_models.dialect import write_body
from agents.chat_models.openai_model import OpenAIModel, dialect_of
from agents.types import ModelEndpoint, ModelRequest
from chatapp.features.openai_api.schemas import ChatCompletion
from memory.tokens import text_message

ENDPOINT = ModelEndpoint(model_id="test-model", base_url="https://api.example.com/v1", api_key="")


def limit_after(effort: str) -> int:
    """Return how long bob's answer may be after alice's request with this `reasoning_effort` was refused."""
    asked = ChatCompletion.model_validate(
        {"messages": [{"role": "user", "content": "Hi"}], "reasoning_effort": effort}
    )
    question = (text_message("user", "Hi"),)
    alices = ModelRequest(question, 4_000, options=asked.options())
    # OpenAI's wording for an unknown value. vLLM, LiteLLM and others repeat the value, too.
    refusal = (
        f"Invalid value: '{alices.options['reasoning_effort']}'. Supported values are: 'low' and 'high'."
    )
    body = {"error": {"message": refusal, "type": "invalid_request_error", "param": "reasoning_effort"}}
    openai_model._dialects.clear()
    try:
        OpenAIModel(ENDPOINT)._adapt(alices, json.dumps(body))  # as `_open` does for a status 400
        sent = write_body(ModelRequest(question, 4_000), "test-model", dialect_of(ENDPOINT))
        return int(sent["max_tokens"])
    finally:
        openai_model._dialects.clear()


def test_one_clients_words_do_not_shorten_the_answers_of_others() -> None:
    assert limit_after("enormous") == 4_000
    assert limit_after("it supports at most 1 completion tokens") == 4_000
