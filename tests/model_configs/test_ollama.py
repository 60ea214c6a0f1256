"""A local Ollama is offered when it answers, and only then."""

from __future__ import annotations

import pytest

from chatapp.actions.model_configs import ensure_first_model
from chatapp.models import ModelConfig
from chatapp.ollama import OLLAMA_DEFAULT_WINDOW, detect_ollama, offer_ollama, offer_ollama_in_background
from chatapp.selectors.model_configs import default_model
from tests.model_configs.ollama_server import ollama_server

TAGS = {"models": [{"name": "llama3.2:3b"}, {"name": "nomic-embed-text:latest"}, {"name": "phi4:latest"}]}


def test_its_chat_models_are_found() -> None:
    with ollama_server({"/api/tags": TAGS}) as url:
        assert detect_ollama(url) == ["llama3.2:3b", "phi4:latest"]


@pytest.mark.parametrize(
    "answer", ["<html>another service</html>", [1, 2], {"models": None}, {}, {"models": [{}]}]
)
def test_something_else_on_its_port_is_not_taken_for_it(answer: object) -> None:
    with ollama_server({"/api/tags": answer}) as url:
        assert detect_ollama(url) == []


def test_where_nothing_listens_nothing_is_found() -> None:
    assert detect_ollama("http://127.0.0.1:9/v1") == []


@pytest.mark.django_db
def test_its_models_can_be_chosen_with_the_window_it_really_uses() -> None:
    ensure_first_model()
    running = {"models": [{"name": "llama3.2:3b", "context_length": 16_384}]}
    with ollama_server({"/api/tags": TAGS, "/api/ps": running, "/api/show": {"parameters": "stop x"}}) as url:
        offer_ollama(url)
    assert default_model().name == "llama3.2:3b"
    windows = dict(ModelConfig.objects.exclude(kind="demo").values_list("name", "detected_context_size"))
    assert windows == {"llama3.2:3b": 16_384, "phi4:latest": OLLAMA_DEFAULT_WINDOW}


@pytest.mark.django_db
def test_a_window_set_in_the_modelfile_counts() -> None:
    show = {"parameters": "temperature 1\nnum_ctx                        32768\n"}
    with ollama_server({"/api/tags": {"models": [{"name": "phi4"}]}, "/api/show": show}) as url:
        (model,) = offer_ollama(url)
    assert model.detected_context_size == 32_768


@pytest.mark.django_db(transaction=True)
def test_it_is_looked_for_in_the_background() -> None:
    with ollama_server({"/api/tags": TAGS}) as url:
        offer_ollama_in_background(url).join(timeout=20)
    assert ModelConfig.objects.filter(origin=ModelConfig.Origin.OLLAMA).count() == 2
