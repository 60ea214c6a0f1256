"""Found out in the background at start, never delaying it: a local Ollama, and windows that nobody entered."""

from __future__ import annotations

import logging
import threading

from django.conf import settings
from django.db import connection

from agents.chat_models.probing import list_models
from agents.errors import ModelError
from agents.types import ListedModel
from chatapp.actions.model_configs import offer_models, store_detected_sizes
from chatapp.chat_models import ask_in_thread, endpoint_of
from chatapp.model_facts import load_prices
from chatapp.models import ModelConfig
from chatapp.ollama import detect_ollama, ollama_window
from chatapp.secrets_box import SecretUnreadable
from chatapp.selectors.model_configs import models_of_unknown_size

log = logging.getLogger(__name__)


def detect_in_background() -> threading.Thread:
    thread = threading.Thread(target=_detect, name="detection", daemon=True)
    thread.start()
    return thread


def offer_ollama(url: str) -> list[ModelConfig]:
    """Its chat models become rows of ours that can be chosen."""
    sizes = {model_id: ollama_window(url, model_id) or 0 for model_id in detect_ollama(url)}
    if not sizes:
        return []
    log.info("Ollama answers at %s: %s.", url, ", ".join(sizes))
    return offer_models(origin=ModelConfig.Origin.OLLAMA, base_url=url, sizes=sizes)


def detect_sizes(config: ModelConfig) -> None:
    """Asks the address for its list of models; costs nothing, and says nothing when it fails."""
    try:
        listed = ask_in_thread(list_models(endpoint_of(config)))
    except (ModelError, SecretUnreadable) as error:
        log.info("The address of %s does not list its models: %s", config.name, error)
        return
    keep_told_sizes(config, next((model for model in listed if model.model_id == config.model_id), None))


def keep_told_sizes(config: ModelConfig, told: ListedModel | None) -> None:
    """Stores what a listing said; an Ollama is asked in its own way, for its listing tells no window."""
    window = told.context_size if told else None
    store_detected_sizes(
        config=config,
        context_size=window or ollama_window(config.base_url, config.model_id),
        max_output_tokens=told.max_output_tokens if told else None,
    )


def _detect() -> None:
    try:
        load_prices()
        if settings.OLLAMA_URL:
            offer_ollama(settings.OLLAMA_URL)
        for config in models_of_unknown_size():
            detect_sizes(config)
    except Exception:
        # The edge of a thread: nobody else would ever hear of it, and the service runs without.
        log.exception("Looking for models and their windows failed.")
    finally:
        connection.close()
