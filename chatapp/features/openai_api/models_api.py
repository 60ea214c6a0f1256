"""`/v1/models` and `/v1/embeddings`."""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.http import JsonResponse
from django.http.response import HttpResponseBase

from agents.chat_models.openai_client import embed_texts
from agents.types import ModelEndpoint
from chatapp.accounts.budgets.actions import Amount
from chatapp.accounts.budgets.metering import held_while
from chatapp.accounts.budgets.selectors import spender_of
from chatapp.accounts.callers import ApiRequest, allow, client_address
from chatapp.accounts.models import User
from chatapp.accounts.rate_limits import check_message_rate
from chatapp.features.openai_api.schemas import Embeddings
from chatapp.operations.database.threads import retry_on_outage
from chatapp.operations.errors import NotFound
from chatapp.operations.http.routers import Router
from chatapp.providers.actions import record_background_calls
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import accessible_model, usable_models
from chatapp.providers.usage import CallUsage
from chatapp.recall.embedding import endpoint
from memory.tokens import estimate_text

router = Router()

_ALWAYS = datetime(2026, 1, 1, tzinfo=UTC)
"""Creation time reported for the embedding model: it is configured by the environment and has none."""


@router.get("/models", auth=allow("chat", "read"))
def list_models(request: ApiRequest) -> HttpResponseBase:
    """List the models that you may choose, the default first, and the embedding model."""
    shapes = [_shape(row.name, row.created_at) for row in usable_models(request.auth.user.pk)]
    if settings.EMBEDDINGS_MODEL:
        shapes.append(_shape(settings.EMBEDDINGS_MODEL, _ALWAYS))
    return JsonResponse({"object": "list", "data": shapes})


def _shape(name: str, created_at: datetime) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": int(created_at.timestamp()),
        "owned_by": "palimpsest",
    }


@router.get("/models/{path:model}", auth=allow("chat", "read"))
def read_model(request: ApiRequest, model: str) -> HttpResponseBase:
    if model and model == settings.EMBEDDINGS_MODEL:
        return JsonResponse(_shape(model, _ALWAYS))
    row: ModelConfig = accessible_model(request.auth.user.pk, model)
    return JsonResponse(_shape(row.name, row.created_at))


@router.post("/embeddings", auth=allow("chat"))
async def create_embeddings(request: ApiRequest, asked: Embeddings) -> HttpResponseBase:
    """Return embeddings from the endpoint that the operator configured for the search."""
    await check_message_rate(request.auth.user.pk, client_address(request))
    found = endpoint()
    if found is None or asked.model != found.model_id:
        raise NotFound("There is no embedding model with this name.", code="model_not_found")
    tokens = sum(map(estimate_text, asked.texts))
    # Don't cancel the call if the client disconnects: it costs the same, and has to be recorded.
    vectors = await asyncio.shield(
        asyncio.ensure_future(_embed(request.auth.user, found, asked.texts, tokens))
    )
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(vector, asked.encoding_format)}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JsonResponse({"object": "list", "data": data, "model": asked.model, "usage": usage})


async def _embed(
    user: User, found: ModelEndpoint, texts: Sequence[str], tokens: int
) -> Sequence[Sequence[float]]:
    """Return a vector for each text, and record the call. Raise ModelError."""
    spender = await retry_on_outage(spender_of)(user.pk)
    async with held_while(spender, Amount(tokens, 0)):
        # Wait for the endpoint in a thread that holds no database connection.
        vectors = await asyncio.to_thread(embed_texts, found, texts)
    spent = CallUsage(model=None, purpose="embedding", input_tokens=tokens, output_tokens=0, exact=False)
    await retry_on_outage(record_background_calls)(user, None, [spent])
    return vectors


def _encoded(vector: Sequence[float], encoding: str) -> Any:
    if encoding == "float":
        return vector
    # The official client reads little-endian 32-bit floats, and requests base64 by default.
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
