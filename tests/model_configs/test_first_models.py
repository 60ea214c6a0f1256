"""Which models exist after a start, depending on the environment."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from chatapp.accounts.models import User
from chatapp.operations.encryption import decrypt
from chatapp.operations.errors import NotFound
from chatapp.providers.actions import ensure_first_model, free_name, offer_models, save_model_config
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import (
    accessible_model,
    default_model,
    fast_model_of,
    offered_models,
    usable_models,
)

pytestmark = pytest.mark.django_db

LOCAL = "http://127.0.0.1:8123/v1"
Start = Callable[..., None]


@pytest.fixture
def start(settings: Settings) -> Start:
    """Return a function that sets the environment and creates the first models, as at a start."""

    def start_with(base_url: str = "", key: str = "", model: str = "", fast: str = "") -> None:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = base_url, key
        settings.LLM_MODEL, settings.FAST_LLM_MODEL = model, fast
        ensure_first_model()

    return start_with


def test_without_key_and_model_the_demo_answers(start: Start) -> None:
    start()
    start()
    assert [model.kind for model in ModelConfig.objects.all()] == ["demo"]
    assert default_model().kind == "demo"


@pytest.mark.parametrize("environment", [{"model": "gpt-4o"}, {"base_url": LOCAL}])
def test_an_incomplete_endpoint_creates_no_model(start: Start, environment: dict[str, str]) -> None:
    start(**environment)
    assert default_model().kind == "demo"


def test_address_and_model_make_the_default_model(start: Start, alice: User) -> None:
    start(LOCAL, model="qwen3", fast="qwen3-small")
    model = default_model()
    assert (model.name, model.model_id, model.base_url) == ("qwen3", "qwen3", LOCAL)
    assert model.from_environment
    assert fast_model_of(model).model_id == "qwen3-small"
    assert [choice.name for choice in usable_models(alice.pk)] == ["qwen3", "qwen3-small", "Demo"]


def test_a_key_alone_means_openai(start: Start) -> None:
    start(key="sk-1")
    model = default_model()
    assert (model.base_url, decrypt(model.api_key_encrypted)) == ("", "sk-1")
    assert fast_model_of(model) != model


def test_the_key_is_stored_encrypted(start: Start) -> None:
    start(LOCAL, key="sk-very-secret", model="qwen3")
    assert "sk-very-secret" not in str(list(ModelConfig.objects.values()))
    assert decrypt(default_model().api_key_encrypted) == "sk-very-secret"


def test_a_changed_environment_updates_the_same_row(start: Start) -> None:
    start(LOCAL, key="sk-1", model="qwen3")
    before = default_model()
    start("https://api.example.com/v1/", key="sk-2", model="glm-5")
    after = default_model()
    assert after.pk == before.pk
    assert (after.name, after.model_id, after.base_url) == ("glm-5", "glm-5", "https://api.example.com/v1")
    assert decrypt(after.api_key_encrypted) == "sk-2"


def test_a_start_keeps_the_fields_that_operators_edited(start: Start) -> None:
    start(LOCAL, model="qwen3")
    model = default_model()
    model.name, model.context_size, model.system_prompt = "Our model", 9000, "Be brief."
    save_model_config(config=model)
    start(LOCAL, model="glm-5")
    model.refresh_from_db()
    assert (model.name, model.context_size, model.system_prompt) == ("Our model", 9000, "Be brief.")
    assert model.model_id == "glm-5"


def test_a_start_keeps_the_operators_default(start: Start) -> None:
    start(LOCAL, model="qwen3")
    demo = accessible_model(None, "Demo")
    demo.is_default = True
    save_model_config(config=demo)
    start(LOCAL, model="qwen3")
    assert default_model().kind == "demo"


def test_a_changed_model_id_resets_the_detected_values(start: Start) -> None:
    start(LOCAL, model="qwen3")
    ModelConfig.objects.update(detected_context_size=8192, token_ratio=1.2, token_ratio_samples=9)
    start(LOCAL, model="glm-5")
    model = default_model()
    assert (model.detected_context_size, model.token_ratio, model.token_ratio_samples) == (0, 1.0, 0)


def test_saving_a_row_keeps_values_that_were_detected_meanwhile(start: Start) -> None:
    start(LOCAL, model="qwen3")
    loaded_before = default_model()
    ModelConfig.objects.update(detected_context_size=8192, token_ratio=1.2, token_ratio_samples=9)
    loaded_before.context_size = 9000
    save_model_config(config=loaded_before)
    model = default_model()
    assert (model.context_size, model.detected_context_size, model.token_ratio_samples) == (9000, 8192, 9)


def test_a_model_whose_variables_were_removed_stays_as_the_operators(start: Start) -> None:
    start(LOCAL, key="sk-1", model="qwen3")
    start()
    model = default_model()
    assert model.name == "qwen3"
    assert not model.from_environment
    start(LOCAL, key="sk-2", model="qwen3")
    assert ModelConfig.objects.filter(model_id="qwen3").count() == 1
    assert decrypt(default_model().api_key_encrypted) == "sk-2"


def test_a_key_from_the_environment_survives_a_new_secret_key(start: Start, settings: Settings) -> None:
    start(LOCAL, key="sk-1", model="qwen3")
    settings.SECRET_KEY = "another"
    start(LOCAL, key="sk-1", model="qwen3")
    assert decrypt(default_model().api_key_encrypted) == "sk-1"


def test_the_fast_model_can_be_the_main_one(start: Start) -> None:
    start(LOCAL, model="qwen3", fast="qwen3")
    assert ModelConfig.objects.count() == 2
    assert fast_model_of(default_model()) == default_model()


def test_main_and_fast_model_can_be_swapped(start: Start) -> None:
    start(LOCAL, model="a", fast="b")
    start(LOCAL, model="b", fast="a")
    assert default_model().model_id == "b"
    assert fast_model_of(default_model()).model_id == "a"


def test_a_taken_name_gets_a_number(start: Start) -> None:
    save_model_config(config=ModelConfig(name="qwen3", model_id="other", base_url=LOCAL))
    start(LOCAL, model="qwen3")
    assert default_model().name == "qwen3 (2)"


# --- adding and choosing models ---------------------------------------------------------------------------------


def test_a_real_model_replaces_the_demo_as_default_and_the_demo_stays_selectable(
    start: Start, alice: User
) -> None:
    start()
    save_model_config(config=ModelConfig(name="Mine", model_id="m", base_url=LOCAL))
    assert [choice.name for choice in usable_models(alice.pk)] == ["Mine", "Demo"]


def test_demo_and_fast_models_are_offered_only_as_the_default(start: Start, alice: User) -> None:
    start()
    fast = ModelConfig(name="Small", model_id="s", base_url=LOCAL)
    save_model_config(config=fast)
    save_model_config(config=ModelConfig(name="Mine", model_id="m", base_url=LOCAL, fast_model=fast))
    rows = list(usable_models(alice.pk))
    assert {row.name for row in rows if row.pk in offered_models(rows)} == {"Small", "Mine"}
    make_default = ModelConfig.objects.get(name="Mine")
    ModelConfig.objects.update(is_default=False)
    make_default.is_default = True
    save_model_config(config=make_default)
    rows = list(usable_models(alice.pk))
    assert {row.name for row in rows if row.pk in offered_models(rows)} == {"Mine"}
    demo = [row for row in rows if row.name == "Demo"]
    assert offered_models(demo) == {demo[0].pk}


def test_a_second_model_does_not_become_the_default(start: Start) -> None:
    start(LOCAL, model="qwen3")
    save_model_config(config=ModelConfig(name="Mine", model_id="m", base_url=LOCAL))
    assert default_model().name == "qwen3"


@pytest.mark.parametrize("name", ["m" * 200, "m" * 199, "m" * 190, "m"])
def test_a_name_that_is_taken_gets_a_number_and_fits_the_column(name: str) -> None:
    longest = ModelConfig._meta.get_field("name").max_length
    assert longest
    names = []
    for _ in range(12):
        names.append(free_name(name))
        ModelConfig.objects.create(name=names[-1], model_id="m")
    assert len({*names}) == 12
    assert max(map(len, names)) <= longest


def test_models_of_an_ollama_are_created_once_and_keep_edits(start: Start) -> None:
    start()
    origin = ModelConfig.Origin.OLLAMA
    offer_models(origin=origin, base_url=LOCAL, sizes={"llama3.2:3b": 4096, "phi4": 0})
    assert default_model().name == "llama3.2:3b"
    ModelConfig.objects.filter(name="phi4").update(name="Phi", enabled=False)
    offer_models(origin=origin, base_url=LOCAL, sizes={"llama3.2:3b": 8192, "phi4": 0})
    rows = ModelConfig.objects.filter(origin=origin).values_list("name", "enabled", "detected_context_size")
    assert set(rows) == {("llama3.2:3b", True, 8192), ("Phi", False, 0)}


def test_a_disabled_model_cannot_be_chosen(start: Start) -> None:
    start(LOCAL, model="qwen3")
    model = default_model()
    ModelConfig.objects.filter(pk=model.pk).update(enabled=False)
    with pytest.raises(NotFound):
        accessible_model(None, "qwen3")
    with pytest.raises(NotFound):
        accessible_model(None, model.pk)
    assert default_model().kind == "demo"


def test_a_disabled_fast_model_is_not_used(start: Start) -> None:
    start(LOCAL, model="qwen3", fast="qwen3-small")
    ModelConfig.objects.filter(model_id="qwen3-small").update(enabled=False)
    assert fast_model_of(default_model()).model_id == "qwen3"


def test_a_model_is_found_by_its_id_its_name_and_the_endpoints_model_id(start: Start) -> None:
    start(LOCAL, model="org/qwen3")
    model = default_model()
    ModelConfig.objects.filter(pk=model.pk).update(name="Shown")
    assert accessible_model(None, model.pk) == accessible_model(None, str(model.pk)) == model
    assert accessible_model(None, "Shown") == accessible_model(None, "org/qwen3") == model


@pytest.mark.django_db(transaction=True)
def test_processes_that_start_concurrently_create_each_row_once(settings: Settings) -> None:
    settings.OPENAI_BASE_URL, settings.LLM_MODEL, settings.FAST_LLM_MODEL = LOCAL, "qwen3", "small"
    together = threading.Barrier(4)
    errors: list[BaseException] = []

    def start_process() -> None:
        together.wait()
        try:
            ensure_first_model()
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=start_process) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(ModelConfig.objects.values_list("name", flat=True)) == ["Demo", "qwen3", "small"]
