"""What an Ollama tells beyond the OpenAI protocol: that it is one, its chat models, and the window it really uses."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

OLLAMA_PORT = 11434
TIMEOUT_S = 2.0
MAX_ANSWER_BYTES = 4 * 2**20
# Unless told otherwise Ollama cuts every prompt, silently and from its beginning, to this many tokens.
OLLAMA_DEFAULT_WINDOW = 4_096
EMBEDDING_MODEL = re.compile(r"embed|bge-|minilm|rerank", re.IGNORECASE)


def detect_ollama(url: str) -> list[str]:
    """The chat models at `url` (ending in /v1), most recently changed first; none if nothing answers there."""
    names = [row.get("name") for row in _models(_ask(f"{_root(url)}/api/tags"))]
    return [name for name in names if isinstance(name, str) and name and not EMBEDDING_MODEL.search(name)]


def ollama_window(url: str, model_id: str) -> int | None:
    """The window it really uses: of the running model, else of its Modelfile, else its default. None: no Ollama."""
    if not _may_be_ollama(url) or "version" not in _ask(f"{_root(url)}/api/version"):
        return None
    for row in _models(_ask(f"{_root(url)}/api/ps")):
        if row.get("name") == model_id and row.get("context_length"):
            return int(row["context_length"])
    shown = _ask(f"{_root(url)}/api/show", {"model": model_id})
    found = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters", "")), re.MULTILINE)
    return int(found[1]) if found else OLLAMA_DEFAULT_WINDOW


def _may_be_ollama(url: str) -> bool:
    """It speaks plain HTTP, or somebody kept its port behind TLS. Others are not bothered."""
    parts = urlsplit(url)
    return parts.scheme == "http" or parts.port == OLLAMA_PORT


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
