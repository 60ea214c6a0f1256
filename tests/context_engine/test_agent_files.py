"""Agent files: a brain's settings override the execution's, summary brains, and errors that name their place."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

import pytest

from agents.loop.hooks import ModuleAction
from agents.presets.agent_file import AgentProfile, ProfileError, list_ignored, read_agent_file

LOCAL = {"provider": "ollama", "model": "qwen2.5:3b"}


HOOK = {"id": "h", "condition": {"type": "always"}, "action": {"type": "log", "message": "m"}}


def calling(params: dict[str, Any]) -> dict[str, Any]:
    return HOOK | {"action": {"type": "module_action", "action": "clock", "params": params}}


def file_of(brain: dict[str, Any] | None = None, **execution: Any) -> dict[str, Any]:
    agent = {"id": "assistant", "brain": {"provider": "deepseek", "model": "deepseek-chat"} | (brain or {})}
    return {"agents": [agent], "execution": execution}


def read(brain: dict[str, Any] | None = None, **execution: Any) -> AgentProfile:
    [profile] = read_agent_file(file_of(brain, **execution), {}).agents
    return profile


@pytest.mark.mechanism("digitorn.brains")
def test_a_brains_context_overrides_the_executions_field_by_field() -> None:
    profile = read(
        {"context": {"strategy": "summarize", "output_reserved": 4096}},
        context={"strategy": "truncate", "keep_recent": 7, "compression_trigger": 0.8},
    )
    assert profile.context_policy == {
        "strategy": "summarize",
        "max_output_tokens": 4096,
        "keep_recent": 7,
        "trigger": 0.8,
    }


def test_trigger_and_compression_trigger_are_the_same_setting() -> None:
    profile = read({"context": {"trigger": 0.3}}, context={"compression_trigger": 0.8})
    assert profile.context_policy == {"trigger": 0.3}


@pytest.mark.mechanism("digitorn.summary-model")
def test_a_summary_brain_can_be_declared_in_the_brain_its_context_or_the_execution() -> None:
    own = LOCAL | {"model": "own"}
    assert read().summary_brain is None
    for profile in (
        read({"summary_brain": own}, context={"summary_brain": LOCAL}),
        read({"context": {"summary_brain": own}}, context={"summary_brain": LOCAL}),
        read(context={"summary_brain": own}),
    ):
        assert profile.summary_brain is not None
        assert profile.summary_brain.model == "own"
        assert profile.summary_brain.base_url == "http://127.0.0.1:11434/v1"
        assert "summary_brain" not in profile.context_policy


def test_placeholders_are_filled_from_the_environment() -> None:
    brain = {"config": {"api_key": "{{env.DEEPSEEK_API_KEY}}", "base_url": "http://127.0.0.1:9/v1/"}}
    [profile] = read_agent_file(file_of(brain), {"DEEPSEEK_API_KEY": "secret"}).agents
    assert (profile.brain.api_key, profile.brain.base_url) == ("secret", "http://127.0.0.1:9/v1")


def test_hooks_accept_the_key_on_that_yaml_parses_as_true() -> None:
    hook = {
        "id": "h",
        True: "turn_start",
        "condition": {"type": "turn_count", "count": 5},
        "action": {"type": "inject_message", "role": "system", "message": "Five."},
        "cooldown": 0,
    }
    [read_hook] = read(hooks=[hook]).hooks
    assert (read_hook.on, read_hook.condition.type) == ("turn_start", "turn_count")


def test_an_agents_hooks_are_added_to_the_executions_and_override_those_with_the_same_id() -> None:
    content = file_of(hooks=[HOOK, HOOK | {"id": "shared"}])
    content["agents"][0]["hooks"] = [HOOK | {"on": "turn_start"}, HOOK | {"id": "own"}]
    [profile] = read_agent_file(content, {}).agents
    assert [(hook.id, hook.on) for hook in profile.hooks] == [
        ("h", "turn_start"),
        ("shared", "turn_end"),
        ("own", "turn_end"),
    ]


def test_a_date_in_a_hooks_parameters_is_read_as_text() -> None:
    [hook] = read_agent_file({"hooks": [calling({"after": date(2026, 11, 1)})]}, {}).hooks
    assert isinstance(hook.action, ModuleAction)
    assert hook.action.params == {"after": "2026-11-01"}


@pytest.mark.mechanism("digitorn.example")
@pytest.mark.parametrize(
    ("content", "place"),
    [
        ([], "the file"),
        ({"agents": []}, "agents"),
        (file_of({"model": ""}), "agents.0.brain.model"),
        (file_of({"backend": "telepathy"}), "agents.0.brain.backend"),
        (file_of({"provider": "nobody"}), "agents.0.brain.config.base_url"),
        (file_of({"context": {"keep_recnt": 3}}), "agents.0.brain.context.keep_recnt"),
        (file_of(context={"strategy": "magic"}), "execution.context.strategy"),
        (file_of(hooks=[{"id": "h"}]), "execution.hooks.0"),
        (file_of({"config": {"api_key": "{{env.MISSING}}"}}), "agents.0.brain.config.api_key"),
        ({"conversations": [{"id": "seven", "hooks": []}]}, "conversations.0.id"),
        ({"conversations": [{"id": str(UUID(int=7))}]}, "conversations.0.hooks"),
        ({"conversations": [{"id": str(UUID(int=7)), "hooks": [HOOK, HOOK]}]}, "conversations.0.hooks"),
        ({"conversations": [{"id": str(UUID(int=7)), "hooks": []}] * 2}, "conversations"),
        ({"hooks": [calling({"at": "a\x00b"})]}, "hooks.0.action.params.at: it contains a character"),
        ({"hooks": [calling({"at": [1, "\ud800"]})]}, "hooks.0.action.params.at.1: it contains a character"),
        ({"hooks": [calling({"a\x00b": 1})]}, "hooks.0.action.params: it contains a character"),
        ({"hooks": [calling({"at": float("inf")})]}, "hooks.0.action.params.at: it contains a number"),
        (
            {"hooks": [calling({"at": b"\xff"})]},
            "hooks.0.action.params.at: it contains an unsupported value of type bytes",
        ),
    ],
)
def test_an_error_names_its_place_in_the_file(content: Any, place: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read_agent_file(content, {})
    assert str(caught.value).startswith(place)


def test_ignored_keys_are_listed() -> None:
    content = file_of({"contxt": {}}) | {"modules": {}, "conversations": [{"id": "x", "hook": []}]}
    assert list_ignored(content) == ["modules", "agents.0.brain.contxt", "conversations.0.hook"]


@pytest.mark.parametrize(
    ("declared", "mode"), [("plan", "plan"), ("auto", "auto"), ("react", "react"), ("conversation", "react")]
)
def test_the_agent_takes_the_mode_of_the_execution(declared: str, mode: str) -> None:
    assert read(mode=declared).mode == mode
