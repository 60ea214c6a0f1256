"""Public facts about models: windows, output limits, prices. Looked up offline by the model's name."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price, data_snapshot

from agents.types import TokenUsage
from chatapp.providers.models import ModelConfig

TABLE = Path(__file__).with_name("model_facts.json")
OPENAI_ADDRESS = "https://api.openai.com/v1"
MILLION = Decimal(1_000_000)
# A pattern as short as "o3" would match in the middle of unrelated names.
SHORTEST_INNER_PATTERN = 5


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Sizes in tokens; None if unknown."""

    context_size: int | None = None
    max_output_tokens: int | None = None


def find_facts(model_id: str, base_url: str = "") -> ModelFacts:
    """Return the known sizes: from the reviewed table, which has output limits, or else from genai-prices."""
    return _find_in_table(model_id) or ModelFacts(context_size=_priced_window(model_id, base_url))


def load_prices() -> None:
    """Load the prices in advance, which takes half a second, so that no answer waits for it."""
    data_snapshot.get_snapshot()


def price_call(config: ModelConfig, usage: TokenUsage) -> Decimal | None:
    """Return the cost in US dollars at current prices, the operator's first. None if no price is known."""
    if config.kind == ModelConfig.Kind.DEMO:
        return Decimal(0)
    if config.input_price is not None and config.output_price is not None:
        # Without an entered discount, count the full price: the cost is rather too high than too low.
        cached_price = config.input_price if config.cached_price is None else config.cached_price
        return _add_up(usage, config.input_price, config.output_price, cached_price)
    try:
        price = calc_price(
            PricedUsage(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                # The library returns no price for more cached tokens than input.
                cache_read_tokens=min(usage.cached_tokens, usage.input_tokens),
            ),
            config.model_id,
            provider_api_url=config.base_url or OPENAI_ADDRESS,
        )
    except (LookupError, ValueError):
        return None
    return price.total_price


def normalize_name(model_id: str) -> str:
    """Return the normalised form of a name that hosts spell in many ways: `meta/Llama3.1:8b` → `llama-3-1-8b`."""
    name = model_id.lower().rstrip("/").rpartition("/")[2]
    name = re.sub(r"[^a-z0-9]+", "-", name)
    # llama3 → llama-3, but 8x7b stays
    return re.sub(r"(?<=[a-z])(?<!\dx)(?=\d)", "-", name).strip("-")


@lru_cache(maxsize=1024)
def _find_in_table(model_id: str) -> ModelFacts | None:
    """Return the longest entry that is a prefix of the name; if there is none, one that begins at a later word."""
    words = normalize_name(model_id).split("-")
    table = _table()
    for start in range(len(words)):
        for end in range(len(words), start, -1):
            entry = "-".join(words[start:end])
            if start and len(entry) < SHORTEST_INNER_PATTERN:
                break
            if entry in table and not _is_version(words[end : end + 1]):
                return table[entry]
    return None


def _is_version(next_word: list[str]) -> bool:
    """Return whether a version number follows: the entry `claude-opus-4` does not match `claude-opus-4-7`."""
    return bool(next_word) and next_word[0].isdigit() and len(next_word[0]) <= 2


@cache
def _table() -> dict[str, ModelFacts]:
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["models"]
    return {normalize_name(name): ModelFacts(window, output) for name, window, output in rows}


@lru_cache(maxsize=1024)
def _priced_window(model_id: str, base_url: str) -> int | None:
    snapshot = data_snapshot.get_snapshot()
    # If the library does not know the address, it may still know the model by its name.
    for address in (base_url or OPENAI_ADDRESS, None):
        try:
            window = snapshot.find_provider_model(model_id, None, None, address)[1].context_window
        except LookupError:
            continue
        if window:
            return window
    return None


def _add_up(usage: TokenUsage, input_price: Decimal, output_price: Decimal, cached_price: Decimal) -> Decimal:
    """Return the cost. Prices are per million tokens; cached tokens are part of the input."""
    cached_tokens = min(usage.cached_tokens, usage.input_tokens)
    fresh_tokens = usage.input_tokens - cached_tokens
    total = fresh_tokens * input_price + cached_tokens * cached_price + usage.output_tokens * output_price
    return total / MILLION
