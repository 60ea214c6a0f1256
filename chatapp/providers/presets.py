"""Addresses of common providers and servers, for operators who connect a model."""

from __future__ import annotations

from dataclasses import dataclass

from chatapp.providers.model_facts import OPENAI_ADDRESS


@dataclass(frozen=True, slots=True)
class Preset:
    """One of the cards. `base_url` is prefilled; if it is empty, `example` shows its format."""

    slug: str
    name: str
    what: str
    base_url: str = ""
    example: str = ""
    key: str = ""
    """Where to find the key; empty if it usually needs none."""
    hint: str = ""


_IN_A_CONTAINER = (
    "If Palimpsest runs in a container, 127.0.0.1 is that container: write host.docker.internal instead."
)
OTHER = Preset(
    "other", "Another one", "Any OpenAI-compatible address", example="https://models.example.com/v1"
)


def presets(ollama_url: str) -> tuple[Preset, ...]:
    """Return the presets in display order. `ollama_url` is where this deployment looks for an Ollama."""
    return (
        Preset(
            "openai",
            "OpenAI",
            "GPT models",
            OPENAI_ADDRESS,
            key="A key of platform.openai.com, under API keys.",
        ),
        Preset(
            "ollama",
            "Ollama",
            "Models on your own machine",
            ollama_url or "http://127.0.0.1:11434/v1",
            hint="Ollama cuts prompts at 4,096 tokens unless its OLLAMA_CONTEXT_LENGTH says more. "
            + _IN_A_CONTAINER,
        ),
        Preset(
            "vllm",
            "vLLM",
            "Your own GPU server",
            example="http://vllm.internal:8000/v1",
            hint="The key is what the server was started with (--api-key). SGLang and llama.cpp are connected alike.",
        ),
        Preset(
            "deepseek",
            "DeepSeek",
            "DeepSeek's own API",
            "https://api.deepseek.com/v1",
            key="A key of platform.deepseek.com, under API keys.",
        ),
        Preset(
            "openrouter",
            "OpenRouter",
            "Models of many providers",
            "https://openrouter.ai/api/v1",
            key="A key of openrouter.ai, under Keys.",
        ),
        Preset(
            "lmstudio",
            "LM Studio",
            "Models on your own machine",
            "http://127.0.0.1:1234/v1",
            hint="Start its server in the tab Developer. " + _IN_A_CONTAINER,
        ),
        Preset(
            "azure",
            "Azure OpenAI",
            "Your deployments at Microsoft",
            example="https://YOUR-RESOURCE.openai.azure.com/openai/v1",
            key="Keys and Endpoint of the resource, in the Azure portal.",
            hint="The model is the name of your deployment, which the list may not have.",
        ),
        OTHER,
    )
