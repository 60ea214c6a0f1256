"""What the official SDK and black-box tests can rely on in the scripted model server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import openai
import pytest

from memory.summaries.summary_prompts import compaction_prompt
from tests.environment import ROOT
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def client(server: ModelServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.base_url, api_key="any", max_retries=0) as made:
        yield made


def ask(client: openai.OpenAI, text: str = "Hi", system: str = "Be brief.") -> str:
    messages: Any = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    answer = client.chat.completions.create(model="test-model", messages=messages)
    return answer.choices[0].message.content or ""


def test_the_official_sdk_streams_an_answer(server: ModelServer, client: openai.OpenAI) -> None:
    server.script(says("Grüße, 世界!", prompt_tokens=7))
    stream = client.chat.completions.create(
        model="test-model",
        messages=[{"role": "user", "content": "Hi"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert (
        "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Grüße, 世界!"
    )
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == 7


def test_chats_and_summaries_have_separate_scripts(server: ModelServer, client: openai.OpenAI) -> None:
    server.script(says("chat"))
    server.script(says("summary"), kind="summary")
    assert ask(client, system=compaction_prompt(max_tokens=100)) == "summary"
    assert ask(client) == "chat"
    assert [request.kind for request in server.requests] == ["summary", "chat"]


def test_an_answer_may_depend_on_the_request(server: ModelServer, client: openai.OpenAI) -> None:
    server.script(lambda request: says(request.messages[-1]["content"].upper()))
    assert ask(client, "loud") == "LOUD"


def test_an_answer_released_before_it_began_is_sent_once(server: ModelServer) -> None:
    server.script(says("One", hold_after=0, delay_s=0.1), says("Two", delay_s=0.3))
    asked = json.dumps({"model": "test-model", "messages": [], "stream": True})
    connection = HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]))
    answers = []
    for number in (1, 2):
        connection.request("POST", "/v1/chat/completions", asked)
        server.wait_until(lambda running, number=number: len(running.requests) == number)  # type: ignore[misc]
        server.release()
        answers.append(connection.getresponse().read().decode())
    connection.close()
    assert [("One" in answer, "Two" in answer, answer.count("[DONE]")) for answer in answers] == [
        (True, False, 1),
        (False, True, 1),
    ]


def test_a_prompt_larger_than_the_window_is_refused(server: ModelServer, client: openai.OpenAI) -> None:
    server.window = 100
    with pytest.raises(openai.BadRequestError, match="maximum context length is 100"):
        ask(client, "word " * 200)


def test_embeddings_of_similar_texts_are_near_each_other(client: openai.OpenAI) -> None:
    texts = ["the cat sat", "the cat sat down", "quarterly revenue"]
    first, second, third = (row.embedding for row in client.embeddings.create(model="e", input=texts).data)

    def nearness(one: list[float], other: list[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    assert nearness(first, second) > nearness(first, third)


def test_a_held_answer_waits_for_its_release(server: ModelServer, client: openai.OpenAI) -> None:
    server.script(Behaviour(text="one two", hold_after=1))
    stream = client.chat.completions.create(
        model="test-model", messages=[{"role": "user", "content": "Hi"}], stream=True
    )
    pieces: list[str] = []
    for chunk in stream:
        pieces.append(chunk.choices[0].delta.content or "")
        if pieces[-1] == "one":
            assert "finished" not in server.requests[0].times
            server.release()
    assert "".join(pieces) == "one two"


def fetch(url: str, data: Any = None, method: str | None = None) -> Any:
    body = None if data is None else json.dumps(data).encode()
    with urlopen(Request(url, body, method=method)) as answer:
        return json.load(answer)


def test_the_server_process_is_controlled_over_http() -> None:
    command = [sys.executable, "-m", "tests.servers.openai_server", "--port", "0", "--text", "default"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        fetch(f"{url}/_script", {"chat": [{"text": "scripted"}], "window": 50_000})
        asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        answers = [fetch(f"{url}/v1/chat/completions", asked) for _ in range(2)]
        assert [answer["choices"][0]["message"]["content"] for answer in answers] == ["scripted", "default"]
        recorded = fetch(f"{url}/_requests")["requests"]
        assert [request["body"] for request in recorded] == [asked, asked]
        fetch(f"{url}/_requests", method="DELETE")
        assert fetch(f"{url}/_requests")["requests"] == []
        with pytest.raises(HTTPError):
            fetch(f"{url}/_script", {"chat": [{"txet": "misspelt"}]})
    finally:
        process.kill()
        process.wait()
