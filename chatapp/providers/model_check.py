"""The Test of a model: asks its endpoint, keeps what it told, says in plain sentences what was found."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agents.chat_models.probing import probe_model
from agents.types import ListedModel
from chatapp.context.policies import rules_for
from chatapp.operations.encryption import SecretUnreadable
from chatapp.providers.actions import record_test
from chatapp.providers.chat_models import ask_in_thread, endpoint_of
from chatapp.providers.detection import keep_told_sizes
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import resolve_budget_inputs
from memory.errors import PolicyError

FIRST_TOKEN_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class ModelCheck:
    is_working: bool
    text: str


def check_model(config: ModelConfig) -> ModelCheck:
    """Blocks until the endpoint has answered or its time-out has passed. Not for the event loop."""
    check = _check(config)
    record_test(config=config, result=check.text)
    return check


def _check(config: ModelConfig) -> ModelCheck:
    if config.kind == ModelConfig.Kind.DEMO:
        return ModelCheck(True, "The Demo model is built in and always answers. It is not a language model.")
    try:
        endpoint = endpoint_of(config)
    except SecretUnreadable as error:
        return ModelCheck(False, error.message)
    # Somebody is waiting for this, so not for minutes.
    patience_s = min(endpoint.first_token_timeout_s, FIRST_TOKEN_TIMEOUT_S)
    probe = ask_in_thread(probe_model(replace(endpoint, first_token_timeout_s=patience_s)))
    if probe.error_category is not None:
        return ModelCheck(False, _without_key(probe.sentence, endpoint.api_key))
    keep_told_sizes(config, ListedModel(config.model_id, probe.context_size, probe.max_output_tokens))
    config.refresh_from_db(fields=["detected_context_size", "detected_max_output_tokens"])
    return ModelCheck(True, " ".join([probe.sentence, *_size_sentences(config)]))


def _without_key(text: str, api_key: str) -> str:
    """Some providers repeat the key they refuse."""
    return text.replace(api_key, "…") if api_key else text


def _size_sentences(config: ModelConfig) -> list[str]:
    try:
        resolved = rules_for(config).resolved
    except PolicyError as error:
        return [f"Its context policy is not valid: {error}"]
    budget = resolved.budget
    sentences = [
        f"In effect: a window of {budget.context_size:,} tokens, {budget.max_output_tokens:,} for answers, "
        f"{budget.input_tokens:,} for history and question."
    ]
    told = resolve_budget_inputs(config).detected.context_size
    if resolved.context_size_from != "detected" and 0 < told < budget.context_size:
        sentences.append(f"The model is known to hold only {told:,}: lower the context size.")
    if resolved.warning:
        sentences.append(resolved.warning)
    return sentences
