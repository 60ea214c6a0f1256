"""Detects a local Ollama, and the windows of models for which none was entered, in the background of a start."""

from __future__ import annotations

import json
import logging
import re
import threading
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from django.conf import settings
from django.db import connection

from agents.chat_models.overflow import LARGEST_WINDOW
from agents.chat_models.probing import list_models, read_listing
from agents.errors import ModelError
from agents.types import ListedModel
from chatapp.operations.encryption import SecretUnreadable
from chatapp.providers.actions import offer_models, store_detected_sizes
from chatapp.providers.chat_models import ask_in_thread, endpoint_of
from chatapp.providers.model_facts import load_prices
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import models_of_unknown_size

log = logging.getLogger(__name__)


def detect_in_background() -> threading.Thread:
    # A daemon thread, so that a process can exit without waiting for servers that do not respond.
    thread = threading.Thread(target=_detect, name="detection", daemon=True)
    thread.start()
    return thread


def offer_ollama(url: str) -> list[ModelConfig]:
    """Store the chat models of an Ollama as models that users can choose, and return their rows."""
    sizes = {model_id: ollama_window(url, model_id) or 0 for model_id in detect_ollama(url)}
    if not sizes:
        return []
    log.info("Ollama answers at %s: %s.", url, ", ".join(sizes))
    return offer_models(origin=ModelConfig.Origin.OLLAMA, base_url=url, sizes=sizes)


def detect_sizes(config: ModelConfig) -> None:
    """Request the endpoint's list of models and store the sizes in it, with the window of an Ollama. A failure is only
    logged."""
    try:
        models = ask_in_thread(list_models(endpoint_of(config)))
    except (ModelError, SecretUnreadable) as error:
        log.info("The address of %s does not list its models: %s", config.name, error)
        return
    listed = next((model for model in models if model.model_id == config.model_id), None)
    store_detected_sizes(
        config=config,
        context_size=find_window(config, listed),
        max_output_tokens=listed.max_output_tokens if listed else None,
    )


def find_window(config: ModelConfig, listed: ListedModel | None) -> int | None:
    """Return the window in a listing, or query Ollama's own protocol, because its listing contains none."""
    window = listed.context_size if listed else None
    return window or ollama_window(config.base_url, config.model_id)


def _detect() -> None:
    try:
        load_prices()
        if settings.OLLAMA_URL:
            offer_ollama(settings.OLLAMA_URL)
        for config in models_of_unknown_size():
            detect_sizes(config)
    except Exception:
        # Nothing else logs the error of this thread, and the service works without the result.
        log.exception("Looking for models and their windows failed.")
    finally:
        # Django closes a connection only at the end of a request, and this thread has none.
        connection.close()


OLLAMA_PORT = 11434
TIMEOUT_S = 2.0
MAX_ANSWER_BYTES = 4 * 2**20
# By default, Ollama silently cuts off the beginning of every prompt that is longer than this.
OLLAMA_DEFAULT_WINDOW = 4_096
NUM_CTX = re.compile(r"^num_ctx\s+([1-9]\d{0,11})(?!\d)", re.MULTILINE)
EMBEDDING_MODEL = re.compile(r"embed|bge-|minilm|rerank", re.IGNORECASE)


def detect_ollama(url: str) -> list[str]:
    """Return the chat models at `url` (ending in /v1), most recently changed first; none if nothing responds."""
    names = [model.model_id for model in read_listing(_ask(f"{_root(url)}/api/tags"))]
    return [name for name in names if not EMBEDDING_MODEL.search(name)]


def ollama_window(url: str, model_id: str) -> int | None:
    """Return the window in use: of the running model, its Modelfile, or the default. None if it is not an Ollama."""
    # Other servers fail the first request, and get no more.
    if not _may_be_ollama(url) or "version" not in _ask(f"{_root(url)}/api/version"):
        return None
    for running in read_listing(_ask(f"{_root(url)}/api/ps")):
        if running.model_id == model_id and running.context_size:
            return running.context_size
    shown = _ask(f"{_root(url)}/api/show", {"model": model_id})
    found = NUM_CTX.search(str(shown.get("parameters", "")))
    # Cap the value at the largest window that a listing may contain.
    return min(int(found[1]), LARGEST_WINDOW) if found else OLLAMA_DEFAULT_WINDOW


def _may_be_ollama(url: str) -> bool:
    """Return whether it may be an Ollama: plain HTTP, or its default port behind TLS."""
    parts = urlsplit(url)
    return parts.scheme == "http" or parts.port == OLLAMA_PORT


def _root(url: str) -> str:
    return url.rstrip("/").removesuffix("/v1")


def _ask(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON object of the response; {} if no Ollama responds. Never use a proxy."""
    request = Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=TIMEOUT_S) as response:
            answer = json.loads(response.read(MAX_ANSWER_BYTES))
    # Any server may listen there, and send anything, e.g. endlessly nested JSON.
    except (OSError, HTTPException, ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}
