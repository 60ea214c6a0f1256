"""The models of a local Ollama are offered only if the server responds as one."""

from __future__ import annotations

import socket
import threading

import pytest
from pytest_django.fixtures import Settings

from chatapp.providers.actions import ensure_first_model
from chatapp.providers.detection import (
    OLLAMA_DEFAULT_WINDOW,
    detect_in_background,
    detect_ollama,
    offer_ollama,
    ollama_window,
)
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import default_model
from tests.model_configs.ollama_server import ollama_server

VERSION = {"/api/version": {"version": "0.30.1"}}
TAGS = {"models": [{"name": "llama3.2:3b"}, {"name": "nomic-embed-text:latest"}, {"name": "phi4:latest"}]}


def test_the_chat_models_of_an_ollama_are_found() -> None:
    with ollama_server({"/api/tags": TAGS}) as url:
        assert detect_ollama(url) == ["llama3.2:3b", "phi4:latest"]


@pytest.mark.parametrize(
    "answer", ["<html>another service</html>", [1, 2], {"models": None}, {}, {"models": [{}]}]
)
def test_another_service_at_the_port_is_not_taken_for_an_ollama(answer: object) -> None:
    with ollama_server({"/api/tags": answer}) as url:
        assert detect_ollama(url) == []


def test_no_models_are_found_if_no_server_listens() -> None:
    assert detect_ollama("http://127.0.0.1:9/v1") == []


@pytest.mark.django_db
def test_models_are_offered_with_the_window_that_ollama_uses() -> None:
    ensure_first_model()
    running = {"models": [{"name": "llama3.2:3b", "context_length": 16_384}]}
    answers = {**VERSION, "/api/tags": TAGS, "/api/ps": running, "/api/show": {"parameters": "stop x"}}
    with ollama_server(answers) as url:
        offer_ollama(url)
    assert default_model().name == "llama3.2:3b"
    windows = dict(ModelConfig.objects.exclude(kind="demo").values_list("name", "detected_context_size"))
    assert windows == {"llama3.2:3b": 16_384, "phi4:latest": OLLAMA_DEFAULT_WINDOW}


@pytest.mark.django_db
def test_a_window_set_in_the_modelfile_is_used() -> None:
    show = {"parameters": "temperature 1\nnum_ctx                        32768\n"}
    with ollama_server({**VERSION, "/api/tags": {"models": [{"name": "phi4"}]}, "/api/show": show}) as url:
        (model,) = offer_ollama(url)
    assert model.detected_context_size == 32_768


@pytest.mark.parametrize("length", [[], "16k", True, -1, 10**20, None, {}])
def test_an_invalid_window_is_ignored(length: object) -> None:
    running = {"models": [{"name": "phi4", "context_length": length}]}
    for parameters, window in (("num_ctx 32768", 32_768), ("num_ctx " + "9" * 5_000, OLLAMA_DEFAULT_WINDOW)):
        answers = {**VERSION, "/api/ps": running, "/api/show": {"parameters": parameters}}
        with ollama_server(answers) as url:
            assert ollama_window(url, "phi4") == window


def test_a_server_that_does_not_speak_http_is_not_taken_for_an_ollama() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        said = threading.Thread(target=lambda: server.accept()[0].sendall(b"220 mail.example.com ESMTP\r\n"))
        said.start()
        assert detect_ollama(f"http://127.0.0.1:{server.getsockname()[1]}/v1") == []
        said.join()


def test_another_server_has_no_ollama_window() -> None:
    with ollama_server({"/api/ps": {"models": [{"name": "m", "context_length": 1}]}}) as url:
        assert ollama_window(url, "m") is None
    assert ollama_window("https://api.example.com/v1", "m") is None
    assert ollama_window("", "m") is None


@pytest.mark.django_db(transaction=True)
def test_an_ollama_is_detected_in_the_background(settings: Settings) -> None:
    with ollama_server({**VERSION, "/api/tags": TAGS}) as url:
        settings.OLLAMA_URL = url
        detect_in_background().join(timeout=120)
    assert ModelConfig.objects.filter(origin=ModelConfig.Origin.OLLAMA).count() == 2
