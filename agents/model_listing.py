"""Reads what servers tell of their models in the answer to GET /models, each in its own field names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agents.types import ListedModel

# vLLM and SGLang, OpenRouter, Groq, LM Studio, Mistral, llama.cpp, Together, Gemini's own names, LiteLLM, others.
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
    """In the server's order; entries without an id are left out."""
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
            if isinstance(value, int | float) and not isinstance(value, bool) and value >= least:
                return int(value)
    return None


def _look_in(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What was found for the endpoint that really answers comes before the model's own card."""
    for name in _PLACES:
        if isinstance(row.get(name), Mapping):
            yield row[name]
    yield row
