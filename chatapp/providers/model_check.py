"""The Test of a model: calls its endpoint, stores the sizes it names, and describes the result in sentences.

A model that is not stored yet is tested in the same way, and stored if it responds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from agents.chat_models.probing import describe_for_operators, list_models, probe_model
from agents.errors import ModelError
from agents.types import ListedModel
from chatapp.operations import clock
from chatapp.operations.encryption import SecretUnreadable
from chatapp.providers.actions import record_test, save_model_config, store_detected_sizes
from chatapp.providers.chat_models import ask_in_thread, endpoint_of
from chatapp.providers.detection import find_window
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import resolve_budget_inputs
from memory.budget import ResolvedBudget
from memory.errors import PolicyError

FIRST_TOKEN_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a test: of a model, or of a server that offers tools."""

    is_working: bool
    text: str


SizesOf = Callable[[ModelConfig], ResolvedBudget]
"""Returns the sizes in effect, or raises PolicyError. A parameter, as policies belong to a package above this one."""


def check_model(config: ModelConfig, sizes_of: SizesOf) -> Check:
    """Test a model, store the result and return it. Blocks until the endpoint responds or times out."""
    check = _check(config, sizes_of)
    if check.is_working:
        store_detected_sizes(
            config=config,
            context_size=config.detected_context_size or None,
            max_output_tokens=config.detected_max_output_tokens or None,
        )
    record_test(config=config, result=check.text)
    return check


def connect_model(config: ModelConfig, sizes_of: SizesOf) -> Check:
    """Test a model that is not stored yet, and store it if it responds. Blocks as `check_model` does."""
    check = _check(config, sizes_of)
    if check.is_working:
        config.test_result, config.tested_at = check.text, clock.now()
        save_model_config(config=config)
    return check


def list_offered(config: ModelConfig) -> tuple[list[ListedModel], str]:
    """Return (the models that the row's address lists, why it lists none)."""
    try:
        offered = ask_in_thread(list_models(endpoint_of(config)))
    except ModelError as error:
        return [], f"The address does not list its models: {describe_for_operators(error)}."
    return offered, "" if offered else "The address lists no models: enter the name of one."


def _check(config: ModelConfig, sizes_of: SizesOf) -> Check:
    """Return the result; set the sizes found on `config` without storing them."""
    if config.kind == ModelConfig.Kind.DEMO:
        return Check(True, "The Demo model is built in and always answers. It is not a language model.")
    try:
        endpoint = endpoint_of(config)
    except SecretUnreadable as error:
        return Check(False, error.message)
    # Shorten the timeout, because an operator waits for the result.
    timeout_s = min(endpoint.first_token_timeout_s, FIRST_TOKEN_TIMEOUT_S)
    probe = ask_in_thread(probe_model(replace(endpoint, first_token_timeout_s=timeout_s)))
    if probe.error_category is not None:
        return Check(False, _without_key(probe.sentence, endpoint.api_key))
    listed = probe.listed or ListedModel(config.model_id)
    config.detected_context_size = find_window(config, listed) or config.detected_context_size
    config.detected_max_output_tokens = listed.max_output_tokens or config.detected_max_output_tokens
    return Check(True, " ".join([probe.sentence, *_size_sentences(config, sizes_of)]))


def _without_key(text: str, api_key: str) -> str:
    """Return the text without the key: some providers repeat the key they refuse."""
    return text.replace(api_key, "…") if api_key else text


def _size_sentences(config: ModelConfig, sizes_of: SizesOf) -> list[str]:
    try:
        resolved = sizes_of(config)
    except PolicyError as error:
        return [f"Its context policy is not valid: {error}"]
    budget = resolved.budget
    sentences = [
        f"In effect: a window of {budget.context_size:,} tokens, {budget.max_output_tokens:,} for answers, "
        f"{budget.input_tokens:,} for history and question."
    ]
    known = resolve_budget_inputs(config).detected.context_size
    if resolved.context_size_from != "detected" and 0 < known < budget.context_size:
        sentences.append(f"The model is known to hold only {known:,}: lower the context size.")
    if resolved.warning:
        sentences.append(resolved.warning)
    return sentences
