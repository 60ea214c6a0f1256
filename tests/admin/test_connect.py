"""Connect a model: list the models of an address, test the chosen one, and store it only if it answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.operations.encryption import decrypt
from chatapp.operations.models import AuditEvent
from chatapp.providers.actions import ensure_first_model
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import default_model
from tests.servers.behaviour import ERRORS
from tests.servers.openai_server import ModelServer

KEY = "sk-very-secret-0123456789"
CONNECT = "/admin/chatapp/modelconfig/connect/"
MODELS = [{"id": "test-model", "max_model_len": 16_384}, "plain", "text-embedding-small"]

pytestmark = [pytest.mark.django_db]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(models=MODELS, api_key=KEY) as running:
        yield running


def connect(client: Client, **form: object) -> Any:
    return client.post(CONNECT, {"_connect": "1", **form}, follow=True)


def real_models() -> list[ModelConfig]:
    return list(ModelConfig.objects.exclude(kind=ModelConfig.Kind.DEMO))


def test_the_panel_offers_to_connect_a_model_until_one_is_connected(
    admin_client: Client, server: ModelServer
) -> None:
    ensure_first_model()
    assert "No model is connected yet" in admin_client.get("/admin/").content.decode()
    connect(admin_client, base_url=server.base_url, api_key=KEY, model_id="test-model")
    assert "No model is connected yet" not in admin_client.get("/admin/").content.decode()


def test_every_preset_fills_in_the_form(admin_client: Client) -> None:
    page = admin_client.get(CONNECT)
    slugs = [preset.slug for preset in page.context["presets"]]
    assert slugs == ["openai", "ollama", "vllm", "deepseek", "openrouter", "lmstudio", "azure", "other"]
    for preset in page.context["presets"]:
        shown = admin_client.get(CONNECT, {"preset": preset.slug})
        address = f'value="{preset.base_url}"' if preset.base_url else f'placeholder="{preset.example}"'
        assert address in shown.content.decode()


def test_the_chat_models_of_an_address_are_offered_with_their_windows(
    admin_client: Client, server: ModelServer
) -> None:
    page = admin_client.post(CONNECT, {"_list": "1", "base_url": server.base_url, "api_key": KEY})
    offered = page.context["form"].fields["listed_model"].widget.choices
    assert offered == [("test-model", "test-model (16,384 tokens)"), ("plain", "plain")]
    assert not real_models()
    assert KEY not in page.content.decode()


def test_the_key_is_kept_for_the_next_page_and_only_for_its_address(
    admin_client: Client, server: ModelServer
) -> None:
    page = admin_client.post(CONNECT, {"_list": "1", "base_url": server.base_url, "api_key": KEY})
    kept = page.context["form"]["kept_key"].value()
    with ModelServer(models=MODELS) as another:
        admin_client.post(CONNECT, {"_list": "1", "base_url": another.base_url, "kept_key": kept})
        assert KEY not in str([request.headers for request in another.requests])
    connect(admin_client, base_url=server.base_url, kept_key=kept, listed_model="test-model")
    [model] = real_models()
    assert decrypt(model.api_key_encrypted) == KEY


def test_a_model_that_answers_is_stored_with_its_sizes_and_replaces_the_demo(
    admin_client: Client, server: ModelServer, admin_user: User
) -> None:
    ensure_first_model()
    page = connect(
        admin_client, base_url=server.base_url, api_key=KEY, listed_model="test-model", name="Ours"
    )
    assert "test-model answers" in page.content.decode()
    assert "New conversations begin with it" in page.content.decode()
    model = default_model()
    assert (model.name, model.detected_context_size) == ("Ours", 16_384)
    assert model.tested_at is not None
    event = AuditEvent.objects.get(kind=AuditEvent.Kind.CHANGED_IN_ADMIN)
    assert (event.detail["done"], event.detail["name"], event.actor_id) == ("added", "Ours", admin_user.pk)


def test_a_second_model_becomes_the_default_only_on_request(
    admin_client: Client, server: ModelServer
) -> None:
    ensure_first_model()
    connect(admin_client, base_url=server.base_url, api_key=KEY, model_id="test-model")
    connect(admin_client, base_url=server.base_url, api_key=KEY, model_id="plain")
    assert default_model().model_id == "test-model"
    connect(admin_client, base_url=server.base_url, api_key=KEY, model_id="plain", make_default="on")
    assert default_model().name == "plain (2)"


@pytest.mark.parametrize(
    ("fault", "sentence"), [("wrong_key", "the key is not accepted"), ("server", "internal error")]
)
def test_a_model_that_fails_its_test_is_not_stored(
    admin_client: Client, server: ModelServer, fault: str, sentence: str
) -> None:
    ensure_first_model()
    server.script(*[ERRORS[fault]() for _ in range(4)])
    page = connect(admin_client, base_url=server.base_url, api_key=KEY, model_id="plain", make_default="on")
    assert "It was not connected" in page.content.decode()
    assert sentence in page.content.decode()
    assert KEY not in page.content.decode()
    assert default_model().kind == ModelConfig.Kind.DEMO
    assert not real_models()


@pytest.mark.parametrize("address", ["http://169.254.169.254/v1", "http://[fd00:ec2::254]/v1"])
def test_metadata_addresses_of_clouds_are_never_requested(admin_client: Client, address: str) -> None:
    page = admin_client.post(CONNECT, {"_list": "1", "base_url": address}).content.decode()
    assert "which is always forbidden" in page
    page = connect(admin_client, base_url=address, model_id="m").content.decode()
    assert "It was not connected" in page
    assert not real_models()


def test_a_server_that_lists_no_models_can_be_connected_by_model_name(admin_client: Client) -> None:
    with ModelServer(models=[]) as server:
        page = admin_client.post(CONNECT, {"_list": "1", "base_url": server.base_url})
        assert "enter the name of one" in page.content.decode()
        connect(admin_client, base_url=server.base_url, model_id="test-model", context_size=9_000)
    [model] = real_models()
    assert model.context_size == 9_000


def test_errors_are_shown_at_their_fields(admin_client: Client, server: ModelServer) -> None:
    ensure_first_model()
    page = connect(admin_client, base_url="ftp://x", context_size=-1, name="Demo")
    assert page.status_code == 400
    assert set(page.context["form"].errors) == {"base_url", "context_size", "name", "model_id"}
    page = connect(admin_client, base_url=server.base_url, api_key=KEY)
    assert page.context["form"].errors == {"model_id": ["Choose a model, or enter the name of one."]}
    assert not server.requests


def test_invalid_query_parameters_show_no_connected_model(admin_client: Client) -> None:
    for query in ("connected=7", "connected=019e0000-0000-7000-8000-000000000000", "preset=none"):
        assert admin_client.get(f"{CONNECT}?{query}").context["connected"] is None
