"""A process killed during an inline summary, whose compaction the worker finishes; and invalid settings at start."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.context_engine.talking import words
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ALICE
from tests.servers.service import Service, run_manage
from tests.servers.waiting import wait_for

POLICY = {"strategy": "summarize", "trigger": 0.3, "keep_recent": 2, "reserve_ratio": 0.0}


@pytest.mark.mechanism("ours.inline-killed")
def test_the_worker_finishes_an_inline_summary_whose_process_was_killed(
    start_service: Callable[..., Service],
) -> None:
    with ModelServer(default=says("Yes."), window=32_000) as model:
        service = start_service(
            OPENAI_BASE_URL=model.base_url,
            LLM_MODEL="test-model",
            LLM_CONTEXT_SIZE="32000",
            LLM_MAX_OUTPUT_TOKENS="4000",
            CONTEXT_POLICY=json.dumps(POLICY),
        )
        alice = service.client_of(ALICE)
        talk = f"/api/v1/conversations/{alice.post('/api/v1/conversations', json={}).json()['id']}"
        for text in ("Hello.", words(9_000, "The crane is QX-17.")):
            assert ask(alice, talk, text)["message"]["status"] == "complete"

        model.script(
            says("Never told.", hold_after=0), says("The crane is QX-17. AFTER-THE-KILL."), kind="summary"
        )
        sent = alice.post(
            f"{talk}/messages", json={"content": "And now?"}, headers={"Prefer": "respond-async"}
        ).json()
        model.wait_until(lambda model: bool(model.requests_of("summary")))
        service.kill()
        service.start()
        wait_for(lambda: statuses(alice, talk) == ["done"], what="the worker finished it")
        run = alice.get(f"/api/v1/runs/{sent['run_id']}").json()
        assert run["status"] == "interrupted"
        assert ask(alice, talk, "Once more?")["message"]["status"] == "complete"
        assert "AFTER-THE-KILL" in model.requests_of("chat")[-1].messages[1]["content"]


def ask(alice: httpx2.Client, talk: str, content: str) -> Any:
    return alice.post(f"{talk}/messages", json={"content": content}, timeout=120).json()


def statuses(alice: httpx2.Client, talk: str) -> list[str]:
    return [row["status"] for row in alice.get(f"{talk}/compactions").json()["items"]]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("{", "CONTEXT_POLICY is not valid JSON"),
        ("[1]", "CONTEXT_POLICY must be a JSON object"),
        ('{"keep_recnt": 3}', "CONTEXT_POLICY: keep_recnt (environment): unknown setting"),
        ('{"trigger": 7}', "CONTEXT_POLICY: trigger (environment): "),
    ],
)
def test_an_invalid_policy_in_the_environment_is_reported_at_start(
    tmp_path: Path, value: str, sentence: str
) -> None:
    done = run_manage({"DATA_DIR": str(tmp_path), "CONTEXT_POLICY": value}, "check")
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ('{"id": "h"}', "HOOKS must be a JSON list of objects."),
        ('[{"id": "h", "on": "noon"}]', "HOOKS: hooks.0.on (environment): "),
    ],
)
def test_invalid_hooks_in_the_environment_are_reported_at_start(
    tmp_path: Path, value: str, sentence: str
) -> None:
    done = run_manage({"DATA_DIR": str(tmp_path), "HOOKS": value}, "check")
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
