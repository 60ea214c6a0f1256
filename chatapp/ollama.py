"""A local Ollama that answers on its usual port is offered by itself. Looked for in the background at start."""

from __future__ import annotations

import json
import logging
import re
import threading
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from django.db import connection

from chatapp.actions.model_configs import offer_models
from chatapp.models import ModelConfig

log = logging.getLogger(__name__)

TIMEOUT_S = 2.0
MAX_ANSWER_BYTES = 4 * 2**20
# Unless told otherwise Ollama cuts every prompt, silently and from its beginning, to this many tokens.
OLLAMA_DEFAULT_WINDOW = 4_096
EMBEDDING_MODEL = re.compile(r"embed|bge-|minilm|rerank", re.IGNORECASE)


def detect_ollama(url: str) -> list[str]:
    """The chat models at `url` (ending in /v1), most recently changed first; none if nothing answers there."""
    names = [row.get("name") for row in _models(_ask(f"{_root(url)}/api/tags"))]
    return [name for name in names if isinstance(name, str) and name and not EMBEDDING_MODEL.search(name)]


def detect_window(url: str, model_id: str) -> int:
    """The window Ollama really uses: of the running model, else of its Modelfile, else Ollama's default."""
    running = _ask(f"{_root(url)}/api/ps")
    for row in _models(running):
        if row.get("name") == model_id and row.get("context_length"):
            return int(row["context_length"])
    shown = _ask(f"{_root(url)}/api/show", {"model": model_id})
    found = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters", "")), re.MULTILINE)
    return int(found[1]) if found else OLLAMA_DEFAULT_WINDOW


def offer_ollama(url: str) -> list[ModelConfig]:
    sizes = {model_id: detect_window(url, model_id) for model_id in detect_ollama(url)}
    if not sizes:
        return []
    offered = offer_models(origin=ModelConfig.Origin.OLLAMA, base_url=url, sizes=sizes)
    log.info("Ollama answers at %s: %s.", url, ", ".join(sizes))
    return offered


def offer_ollama_in_background(url: str) -> threading.Thread:
    thread = threading.Thread(target=_offer, args=(url,), name="ollama-detection", daemon=True)
    thread.start()
    return thread


def _offer(url: str) -> None:
    try:
        offer_ollama(url)
    except Exception:
        # The edge of a thread: nobody else would ever hear of it, and the service runs without.
        log.exception("Looking for a local Ollama failed.")
    finally:
        connection.close()


def _root(url: str) -> str:
    return url.rstrip("/").removesuffix("/v1")


def _models(answer: dict[str, Any]) -> list[dict[str, Any]]:
    rows = answer.get("models")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _ask(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The JSON object answered, {} when nobody or somebody else answers. Never through a proxy."""
    request = Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=TIMEOUT_S) as response:
            answer = json.loads(response.read(MAX_ANSWER_BYTES))
    except (OSError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}
