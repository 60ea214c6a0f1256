"""Builds the chat model for a model configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from django.conf import settings

from agents.chat_models.demo_model import DemoModel
from agents.chat_models.openai_client import close_clients
from agents.chat_models.openai_model import OpenAIModel
from agents.chat_models.prompted_model import AutoToolsModel, PromptedModel
from agents.errors import ModelError
from agents.types import ChatModel, ModelEndpoint
from chatapp.accounts.budgets.metering import MeteredModel
from chatapp.accounts.budgets.values import Spender
from chatapp.operations import encryption
from chatapp.providers.model_facts import price_call
from chatapp.providers.models import ModelConfig

T = TypeVar("T")


def endpoint_of(config: ModelConfig) -> ModelEndpoint:
    """Return the endpoint with its key, decrypted. Raise SecretUnreadable."""
    return ModelEndpoint(
        model_id=config.model_id,
        base_url=config.base_url,
        api_key=encryption.decrypt(config.api_key_encrypted),
        connect_timeout_s=settings.MODEL_CONNECT_TIMEOUT_S,
        first_token_timeout_s=settings.MODEL_FIRST_TOKEN_TIMEOUT_S,
        stall_timeout_s=settings.MODEL_STALL_TIMEOUT_S,
        max_answer_bytes=settings.MAX_ANSWER_BYTES,
    )


def chat_model_for(config: ModelConfig, spender: Spender) -> ChatModel:
    """Return the chat model of a row, whose calls count against the spender's budgets.

    Raise ModelError if the stored key cannot be decrypted any more.
    """
    model = _unmetered(config)
    # Without a limit nothing is held, so that no call waits for a budget row.
    return MeteredModel(model, spender, partial(price_call, config)) if spender.limits else model


def _unmetered(config: ModelConfig) -> ChatModel:
    if config.kind == ModelConfig.Kind.DEMO:
        return DemoModel()
    try:
        model = OpenAIModel(endpoint_of(config))
    except encryption.SecretUnreadable as error:
        raise ModelError(
            "auth",
            "The stored key of this model can no longer be read; an operator has to enter it again.",
            detail=error.message,
        ) from None
    match config.tool_calling:
        case ModelConfig.ToolCalling.PROMPTED:
            return PromptedModel(model)
        case ModelConfig.ToolCalling.NATIVE:
            return model
        case _:
            return AutoToolsModel(model, (config.base_url, config.model_id))


def ask_in_thread(question: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine in its own event loop, in a thread without one, and return its result."""

    async def ask() -> T:
        try:
            return await question
        finally:
            await close_clients()

    return asyncio.run(ask())
