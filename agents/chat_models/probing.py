"""Test a model's address: read the list of its models, and time one short streamed answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2

from agents.chat_models.dialect import OPENAI_ADDRESS
from agents.chat_models.error_mapping import describe_error
from agents.chat_models.openai_client import fetch_models
from agents.chat_models.openai_model import OpenAIModel
from agents.chat_models.overflow import LARGEST_WINDOW
from agents.errors import ModelError
from agents.guarded_http import ForbiddenHost, check_own_address
from agents.types import Finished, ListedModel, ModelEndpoint, ModelRequest, ProbeResult, RequestSent
from memory.tokens import text_message

PROBE_TOKENS = 512
"""Enough for a reasoning model to reach its one-word answer."""


async def list_models(endpoint: ModelEndpoint) -> list[ListedModel]:
    """Return the models that the address offers. Raise ModelError, also for a forbidden address."""
    await _check_address(endpoint)
    return read_listing(await fetch_models(endpoint))


async def probe_model(endpoint: ModelEndpoint) -> ProbeResult:
    """Return the result of the test; a ModelError becomes part of it."""
    models, listing_error = await _try_listing(endpoint)
    # Nothing responds there: a call would only wait for a second timeout.
    if listing_error is not None and listing_error.category in ("connection", "timeout"):
        return _describe_failure(endpoint, listing_error, [])
    try:
        return await _ask(endpoint, models)
    except ModelError as error:
        return _describe_failure(endpoint, error, models)


async def _check_address(endpoint: ModelEndpoint) -> None:
    """Raise ModelError for forbidden addresses, e.g. metadata services that return the machine's credentials."""
    try:
        await check_own_address(httpx2.URL(endpoint.base_url or OPENAI_ADDRESS))
    except ForbiddenHost as error:
        raise describe_error("connection", str(error)) from None
    except (httpx2.InvalidURL, ValueError) as error:
        raise describe_error("not_found", f"The address cannot be used: {error}") from error


async def _try_listing(endpoint: ModelEndpoint) -> tuple[list[ListedModel], ModelError | None]:
    """Return (models, error). A server that does not list its models may still answer."""
    try:
        return await list_models(endpoint), None
    except ModelError as error:
        return [], error


async def _ask(endpoint: ModelEndpoint, models: list[ListedModel]) -> ProbeResult:
    request = ModelRequest((text_message("user", "Answer with the one word: ready"),), PROBE_TOKENS)
    started = time.monotonic()
    first_token_s: float | None = None
    has_usage = False
    async for item in OpenAIModel(endpoint).stream(request):
        if isinstance(item, Finished):
            has_usage = item.usage.exact
        elif not isinstance(item, RequestSent):
            first_token_s = first_token_s or time.monotonic() - started
    listed = next((model for model in models if model.model_id == endpoint.model_id), None)
    return ProbeResult(_describe_answer(endpoint, first_token_s, has_usage, listed), listed)


def _describe_answer(
    endpoint: ModelEndpoint, first_token_s: float | None, has_usage: bool, listed: ListedModel | None
) -> str:
    speed = f"first token after {first_token_s * 1000:,.0f} ms" if first_token_s else "but without any text"
    counts = "it counts tokens" if has_usage else "it does not count tokens, so they are estimated"
    window = f"its window is {listed.context_size:,} tokens" if listed and listed.context_size else None
    facts = [speed, counts, window or "it does not report its window"]
    return f"{endpoint.model_id} answers: {', '.join(facts)}."


def _describe_failure(endpoint: ModelEndpoint, error: ModelError, models: list[ListedModel]) -> ProbeResult:
    hint = ""
    if error.category == "not_found" and models:
        names = ", ".join(model.model_id for model in models[:8])
        hint = f" The address offers: {names}, …" if len(models) > 8 else f" The address offers: {names}."
    return ProbeResult(
        sentence=f"{endpoint.model_id} does not answer: {describe_for_operators(error)}.{hint}",
        error_category=error.category,
    )


def describe_for_operators(error: ModelError) -> str:
    """Return the reason of a failure, as the second half of a sentence, with the provider's own words."""
    words = error.provider_words or error.detail
    detail = f" ({words.rstrip('.')})" if words else ""
    return _REASONS.get(error.category, error.message) + detail


# For operators, who can fix the cause.
_REASONS: dict[str, str] = {
    "auth": "the key is not accepted",
    "not_found": "the address does not know this model",
    "rate_limit": "too many requests right now; try again in a minute",
    "quota": "the account has no credit left",
    "overflow": "even a short question is larger than its window",
    "bad_request": "it refuses the request",
    "server": "it had an internal error",
    "timeout": "no answer in time",
    "stalled": "it began to answer and then stalled",
    "cut": "it began to answer and the connection broke",
    "bad_response": "what comes back is not an OpenAI-compatible answer; does the address end in /v1?",
    "connection": "nothing can be reached at this address",
    "bound": "it exceeded the output limit",
    "content_filter": "its content filter withheld the answer",
}


# --- the list of models


# Names used by vLLM and SGLang, OpenRouter, Groq, LM Studio, Mistral, llama.cpp, Together, Gemini, LiteLLM, others.
_WINDOW_FIELDS = (
    "max_model_len",
    "loaded_context_length",
    "n_ctx",
    "context_length",
    "context_window",
    "max_context_length",
    "n_ctx_train",
    "inputTokenLimit",
    "input_token_limit",
    "max_input_tokens",
    "max_context_tokens",
    "context_size",
)
_OUTPUT_FIELDS = (
    "max_output_tokens",
    "max_completion_tokens",
    "outputTokenLimit",
    "output_token_limit",
    "max_output_length",
)
_PLACES = ("meta", "top_provider", "limits", "model_info", "capabilities", "metadata")
LEAST_WINDOW = 128


def read_listing(answer: object) -> list[ListedModel]:
    """Return the models in the server's order, without entries that have no id. Servers differ in field names."""
    rows = answer if isinstance(answer, list) else _rows_of(answer)
    return [_read_model(row, _id_of(row)) for row in rows if isinstance(row, Mapping) and _id_of(row)]


def _rows_of(answer: object) -> list[Any]:
    if not isinstance(answer, Mapping):
        return []
    for name in ("data", "models"):
        if isinstance(answer.get(name), list):
            return list(answer[name])
    return []


def _id_of(row: Mapping[str, Any]) -> str:
    name = row.get("id") or row.get("name") or ""
    return name if isinstance(name, str) else ""


def _read_model(row: Mapping[str, Any], model_id: str) -> ListedModel:
    return ListedModel(
        model_id=model_id,
        context_size=_find_number(row, _WINDOW_FIELDS, LEAST_WINDOW),
        max_output_tokens=_find_number(row, _OUTPUT_FIELDS, 1),
    )


def _find_number(row: Mapping[str, Any], names: tuple[str, ...], least: int) -> int | None:
    places = list(_look_in(row))
    for name in names:
        for place in places:
            value = place.get(name)
            # bool is a subclass of int.
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if least <= value <= LARGEST_WINDOW:
                return int(value)
    return None


def _look_in(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings to search: values of the endpoint that answers before those of the model itself."""
    for name in _PLACES:
        if isinstance(row.get(name), Mapping):
            yield row[name]
    yield row
