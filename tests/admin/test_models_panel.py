"""The forms of models in the panel, the keys stored in them, and the test of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.operations.encryption import decrypt
from chatapp.providers.actions import ensure_first_model
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import default_model
from tests.servers.behaviour import ERRORS
from tests.servers.openai_server import ModelServer

KEY = "sk-very-secret-0123456789"
ADD = "/admin/chatapp/modelconfig/add/"

pytestmark = [pytest.mark.django_db]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(models=[{"id": "test-model", "max_model_len": 16_384}], api_key=KEY) as running:
        yield running


def form_of(base_url: str = "http://127.0.0.1:9/v1", **changes: object) -> dict[str, object]:
    form = {
        "name": "Mine",
        "kind": "openai",
        "base_url": base_url,
        "model_id": "test-model",
        "api_key": KEY,
        "context_size": 0,
        "max_output_tokens": 0,
        "context_policy": "{}",
        "enabled": "on",
    } | changes
    return {name: value for name, value in form.items() if value is not None}


def add_model(client: Client, base_url: str = "http://127.0.0.1:9/v1", **changes: object) -> ModelConfig:
    response = client.post(ADD, form_of(base_url, **changes))
    assert response.status_code == 302, response.content.decode()
    return ModelConfig.objects.get(name=changes.get("name", "Mine"))


def page_of(model: ModelConfig) -> str:
    return f"/admin/chatapp/modelconfig/{model.pk}/change/"


def messages_after(client: Client, path: str, form: Mapping[str, object] | None = None) -> str:
    response = client.post(path, form or {}, follow=True)
    return " ".join(str(message) for message in response.context["messages"])


# --- keys -----------------------------------------------------------------------------------------------


def whole_database() -> str:
    rows = [str(list(model._default_manager.values())) for model in apps.get_models()]
    return "\n".join(rows)


def test_a_stored_key_is_encrypted_and_never_shown(admin_client: Client) -> None:
    model = add_model(admin_client)
    assert decrypt(model.api_key_encrypted) == KEY
    for page in (page_of(model), "/admin/chatapp/modelconfig/", f"{page_of(model)[:-7]}history/"):
        content = admin_client.get(page).content.decode()
        assert KEY not in content
        assert model.api_key_encrypted not in content
    assert LogEntry.objects.exists()
    assert KEY not in whole_database()


def test_a_refused_form_does_not_send_the_key_back(admin_client: Client) -> None:
    response = admin_client.post(ADD, form_of(name=""))
    assert response.status_code == 200
    assert KEY not in response.content.decode()


def test_an_empty_key_field_keeps_the_stored_key(admin_client: Client) -> None:
    model = add_model(admin_client)
    admin_client.post(page_of(model), form_of(api_key="", context_size=9000))
    model.refresh_from_db()
    assert (model.context_size, decrypt(model.api_key_encrypted)) == (9000, KEY)


def test_a_stored_key_can_be_replaced_and_removed(admin_client: Client) -> None:
    model = add_model(admin_client)
    admin_client.post(page_of(model), form_of(api_key="sk-2"))
    model.refresh_from_db()
    assert decrypt(model.api_key_encrypted) == "sk-2"
    admin_client.post(page_of(model), form_of(api_key="", remove_api_key="on"))
    model.refresh_from_db()
    assert model.api_key_encrypted == ""


def test_a_stored_key_is_not_sent_to_another_address(admin_client: Client) -> None:
    model = add_model(admin_client)
    response = admin_client.post(page_of(model), form_of("https://mallory.example.com/v1", api_key=""))
    assert "enter its key" in response.content.decode()
    model.refresh_from_db()
    assert model.base_url == "http://127.0.0.1:9/v1"


# --- forms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["ftp://example.com/v1", "example.com/v1", "http://", "http://user:pw@example.com/v1", "javascript:1"],
)
def test_an_invalid_address_is_rejected(admin_client: Client, address: str) -> None:
    assert admin_client.post(ADD, form_of(address)).status_code == 200
    assert not ModelConfig.objects.exists()


@pytest.mark.parametrize(
    "address", ["http://vllm:8000/v1", "http://localhost:11434/v1", "https://api.example.com/v1", ""]
)
def test_addresses_of_the_operators_own_network_are_accepted(admin_client: Client, address: str) -> None:
    assert add_model(admin_client, address).base_url == address


def test_the_first_real_model_becomes_the_default_and_a_later_one_on_request(
    admin_client: Client, server: ModelServer
) -> None:
    ensure_first_model()
    first = add_model(admin_client, server.base_url)
    assert default_model() == first
    second = add_model(admin_client, server.base_url, name="Second", make_default="on")
    assert default_model() == second


def test_a_model_that_fails_its_test_does_not_become_the_default(
    admin_client: Client, server: ModelServer
) -> None:
    ensure_first_model()
    told = messages_after(admin_client, ADD, form_of())
    assert "Mine did not become the default" in told
    assert default_model().kind == ModelConfig.Kind.DEMO
    good = add_model(admin_client, server.base_url, name="Good")
    dead = ModelConfig.objects.get(name="Mine")
    told = messages_after(admin_client, page_of(dead), form_of(make_default="on", _test="Save and test"))
    assert "Mine did not become the default" in told
    assert default_model() == good


def test_editing_the_default_keeps_it_and_does_not_test_it(admin_client: Client, server: ModelServer) -> None:
    model = add_model(admin_client, server.base_url)
    asked = len(server.requests)
    admin_client.post(page_of(model), form_of(server.base_url, make_default="on", context_size=9_000))
    assert default_model() == model
    assert len(server.requests) == asked


def test_the_default_cannot_be_disabled(admin_client: Client) -> None:
    response = admin_client.post(ADD, form_of(make_default="on", enabled=None))
    assert "The default model has to be enabled." in response.content.decode()


def test_the_default_cannot_be_cleared_or_deleted_without_another_one(
    admin_client: Client, server: ModelServer
) -> None:
    ensure_first_model()
    model = add_model(admin_client, server.base_url)
    unticked = form_of(server.base_url) | {"initial-make_default": "True"}
    refused = admin_client.post(page_of(model), unticked)
    assert "Choose another default first, on the page of that model." in refused.content.decode()
    assert admin_client.post(f"{page_of(model)[:-7]}delete/", {"post": "yes"}).status_code == 403
    add_model(admin_client, server.base_url, name="Second", make_default="on")
    assert admin_client.post(f"{page_of(model)[:-7]}delete/", {"post": "yes"}).status_code == 302
    assert ModelConfig.objects.get(is_default=True).name == "Second"


def test_a_stale_form_does_not_revert_the_choice_of_the_default(
    admin_client: Client, server: ModelServer
) -> None:
    ensure_first_model()
    former = add_model(admin_client, server.base_url)
    assert 'name="initial-make_default" value="True"' in admin_client.get(page_of(former)).content.decode()
    chosen = add_model(admin_client, server.base_url, name="Chosen", make_default="on")
    shown = form_of(server.base_url, make_default="on") | {"initial-make_default": "True"}
    assert admin_client.post(page_of(former), shown | {"context_size": 9_000}).status_code == 302
    assert default_model() == chosen
    shown = form_of(server.base_url, name="Chosen") | {"initial-make_default": "False"}
    assert admin_client.post(page_of(chosen), shown | {"context_size": 9_000}).status_code == 302
    assert default_model() == chosen
    assert {*ModelConfig.objects.filter(kind="openai").values_list("context_size", flat=True)} == {9_000}


@pytest.mark.parametrize("policy", ['{"no_such": 1}', '{"trigger": 7}', "[1]"])
def test_an_invalid_context_policy_is_rejected(admin_client: Client, policy: str) -> None:
    response = admin_client.post(ADD, form_of(context_policy=policy))
    assert response.status_code == 200
    assert "errorlist" in response.content.decode()


def test_prices_are_stored_as_entered(admin_client: Client) -> None:
    model = add_model(admin_client, input_price="2.5", output_price="10", cached_price="1.25")
    assert (model.input_price, model.cached_price) == (Decimal("2.5"), Decimal("1.25"))


@pytest.mark.parametrize(
    ("entered", "missing"),
    [
        ({"input_price": "2.5"}, {"output_price"}),
        ({"output_price": "10"}, {"input_price"}),
        ({"cached_price": "1"}, {"input_price", "output_price"}),
        ({"input_price": "0", "cached_price": "1"}, {"output_price"}),
    ],
)
def test_a_price_without_the_prices_it_needs_is_rejected(
    admin_client: Client, entered: dict[str, str], missing: set[str]
) -> None:
    response = admin_client.post(ADD, form_of(**entered))
    assert response.status_code == 200
    assert {*response.context["adminform"].form.errors} == missing


def test_the_effective_sizes_are_shown_with_their_sources(admin_client: Client, settings: Settings) -> None:
    settings.LLM_MAX_OUTPUT_TOKENS = 1_000
    model = add_model(admin_client, model_id="gpt-4o", context_size=20_000)
    page = admin_client.get(page_of(model)).content.decode()
    assert "Context size 20,000: entered here." in page
    assert "Output limit 1,000: from the environment." in page
    assert "Budget for history and question: 15,000." in page


@pytest.mark.mechanism("fim.budget-floor")
def test_a_window_that_is_too_small_shows_a_warning(admin_client: Client) -> None:
    model = add_model(admin_client, context_size=6_000, max_output_tokens=3_000)
    assert "leaves fewer than 4,000" in admin_client.get(page_of(model)).content.decode()


def test_fields_that_the_environment_sets_cannot_be_changed(admin_client: Client, settings: Settings) -> None:
    settings.OPENAI_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:9/v1", "test-model"
    ensure_first_model()
    model = default_model()
    changes = {"name": "Renamed", "context_size": 9000, "make_default": "on"}
    form = form_of("https://mallory.example.com/v1", model_id="other", **changes)
    assert admin_client.post(page_of(model), form).status_code == 302
    model.refresh_from_db()
    assert (model.name, model.context_size) == ("Renamed", 9000)
    assert (model.base_url, model.model_id) == ("http://127.0.0.1:9/v1", "test-model")
    assert admin_client.post(f"{page_of(model)[:-7]}delete/", {"post": "yes"}).status_code == 403


def test_a_model_that_the_next_start_would_find_again_cannot_be_deleted(
    admin_client: Client, settings: Settings
) -> None:
    ensure_first_model()
    add_model(admin_client, make_default="on")
    settings.OLLAMA_URL = "http://127.0.0.1:9/v1"
    rows = {"name": "Phi", "model_id": "phi4", "origin": ModelConfig.Origin.OLLAMA}
    found = ModelConfig.objects.create(base_url=settings.OLLAMA_URL, **rows)
    deletion = f"{page_of(found)[:-7]}delete/"
    assert admin_client.post(deletion, {"post": "yes"}).status_code == 403
    # Without the address, the next start does not find the model again.
    settings.OLLAMA_URL = ""
    assert admin_client.post(deletion, {"post": "yes"}).status_code == 302


# --- testing a model ------------------------------------------------------------------------------------


def test_the_test_reports_its_result_and_stores_the_window(admin_client: Client, server: ModelServer) -> None:
    model = add_model(admin_client, server.base_url)
    told = messages_after(admin_client, f"{page_of(model)[:-7]}test/")
    assert "test-model answers" in told
    assert "a window of 16,384 tokens" in told
    model.refresh_from_db()
    assert model.detected_context_size == 16_384
    assert "test-model answers" in admin_client.get(page_of(model)).content.decode()


def test_save_and_test_tests_the_entered_values(admin_client: Client, server: ModelServer) -> None:
    told = messages_after(admin_client, ADD, form_of(server.base_url, _test="Save and test"))
    assert "test-model answers" in told
    assert server.requests


def test_several_models_are_tested_from_the_list(admin_client: Client, server: ModelServer) -> None:
    good = add_model(admin_client, server.base_url)
    dead = add_model(admin_client, name="Dead")
    form = {"action": "test_selected", "_selected_action": [str(good.pk), str(dead.pk)]}
    told = messages_after(admin_client, "/admin/chatapp/modelconfig/", form)
    assert "Mine: test-model answers" in told
    assert "Dead: test-model does not answer: nothing can be reached" in told


def test_a_wrong_key_is_reported_without_repeating_it(admin_client: Client, server: ModelServer) -> None:
    model = add_model(admin_client, server.base_url, api_key="sk-wrong-and-echoed")
    told = messages_after(admin_client, f"{page_of(model)[:-7]}test/")
    assert "the key is not accepted" in told
    assert "sk-wrong-and-echoed" not in told


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [("quota", "no credit left"), ("server", "internal error"), ("no_model", "does not know this model")],
)
def test_a_failing_provider_is_reported_in_a_sentence(
    admin_client: Client, server: ModelServer, fault: str, sentence: str
) -> None:
    server.script(*[ERRORS[fault]() for _ in range(4)])
    model = add_model(admin_client, server.base_url)
    assert sentence in messages_after(admin_client, f"{page_of(model)[:-7]}test/")


def test_a_key_that_cannot_be_decrypted_is_explained(admin_client: Client) -> None:
    model = add_model(admin_client)
    ModelConfig.objects.filter(pk=model.pk).update(api_key_encrypted="gAAAAA-of-another-key")
    told = messages_after(admin_client, f"{page_of(model)[:-7]}test/")
    assert "SECRET_KEY has changed: enter the key again" in told


def test_a_window_larger_than_that_of_the_model_shows_a_warning(
    admin_client: Client, server: ModelServer
) -> None:
    model = add_model(admin_client, server.base_url, context_size=100_000)
    told = messages_after(admin_client, f"{page_of(model)[:-7]}test/")
    assert "known to hold only 16,384" in told


def test_a_get_request_does_not_test_the_model(admin_client: Client, server: ModelServer) -> None:
    model = add_model(admin_client, server.base_url)
    server.clear()
    assert admin_client.get(f"{page_of(model)[:-7]}test/").status_code == 405
    assert not server.requests


def test_the_demo_model_says_that_it_is_no_language_model(admin_client: Client) -> None:
    ensure_first_model()
    demo = default_model()
    assert "not a language model" in messages_after(admin_client, f"{page_of(demo)[:-7]}test/")


@pytest.mark.parametrize(
    ("field", "value"),
    [("context_size", 10**12), ("max_output_tokens", 10**9), ("system_prompt", "x" * 40_000)],
)
def test_numbers_and_texts_beyond_the_bounds_of_the_api_are_rejected(
    admin_client: Client, field: str, value: object
) -> None:
    response = admin_client.post(ADD, form_of(**{field: value}))
    assert response.status_code == 200
    assert field in response.context["adminform"].form.errors
    assert not ModelConfig.objects.filter(name="Mine").exists()
