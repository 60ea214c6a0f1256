"""Chat completions, as OpenAI's own client sees them."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import socket
from typing import Any

import httpx2
import openai
import pytest
from PIL import Image

from tests.openai_api.conftest import client_of
from tests.reliability.browsers import BrowserSession
from tests.servers.apart import run_apart
from tests.servers.behaviour import ERRORS, Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ALICE, CHARLIE
from tests.servers.service import Service
from tests.servers.waiting import wait_for


def said(content: Any) -> list[Any]:
    return [{"role": "user", "content": content}]


HELLO = said("Hello")
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "strict": True,
    },
}
CALLS = Behaviour(
    text="",
    tool_calls=({"id": "call_1", "name": "weather", "arguments": '{"city":"Oslo"}'},),
    finish_reason="tool_calls",
)

WHOLE_CALLS = Behaviour(
    text="",
    tool_calls=tuple(
        {"name": "weather", "arguments": json.dumps({"city": city}), "is_whole": True}
        for city in ("Oslo", "Rome")
    ),
    finish_reason="tool_calls",
)


def picture() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4), "blue").save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def conversations(service: Service, email: str) -> list[Any]:
    return service.client_of(email).get("/api/v1/conversations").json()["items"]


def test_the_models_are_listed_and_found(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names[0] == "test-model"
    assert "test-vectors" in names
    assert client.models.retrieve("test-model").id == "test-model"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody/knows-it")


def test_an_answer_stores_nothing_but_its_usage(service: Service, model: ModelServer, guest: str) -> None:
    model.script(says("Hello, Guest.", prompt_tokens=12))
    answer = client_of(service, guest).chat.completions.create(
        model="test-model", messages=HELLO, temperature=0.5, top_p=0.9, max_tokens=50, seed=7, stop=["END"]
    )
    assert answer.choices[0].message.content == "Hello, Guest."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage
    assert answer.usage.prompt_tokens == 12
    sent = model.requests_of("chat")[-1].body
    assert sent["messages"] == HELLO
    assert (sent["temperature"], sent["top_p"], sent["seed"], sent["stop"]) == (0.5, 0.9, 7, ["END"])
    assert sent["max_tokens"] == 50
    assert conversations(service, guest) == []
    usage = service.client_of(guest).get("/api/v1/usage").json()
    assert usage["total"]["calls"] == 1
    assert usage["total"]["input_tokens"] == 12


def test_a_stream_contains_the_deltas_and_on_request_the_usage(
    client: openai.OpenAI, model: ModelServer
) -> None:
    model.script(says("One two three four."), says("One two."))
    stream = client.chat.completions.create(
        model="test-model", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert (
        "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        == "One two three four."
    )
    assert chunks[-1].usage
    assert chunks[-1].usage.total_tokens > 0
    assert chunks[-2].choices[0].finish_reason == "stop"
    plain = list(client.chat.completions.create(model="test-model", messages=HELLO, stream=True))
    assert all(chunk.usage is None and chunk.choices for chunk in plain)


def test_complete_calls_at_one_index_are_kept_apart(client: openai.OpenAI, model: ModelServer) -> None:
    model.script(WHOLE_CALLS, WHOLE_CALLS, WHOLE_CALLS)
    answer = client.chat.completions.create(model="test-model", messages=HELLO, tools=[WEATHER])
    with client.chat.completions.stream(model="test-model", messages=HELLO, tools=[WEATHER]) as stream:
        streamed = stream.get_final_completion()
    for message in (answer.choices[0].message, streamed.choices[0].message):
        calls = message.tool_calls or []
        assert [json.loads(call.function.arguments) for call in calls] == [{"city": "Oslo"}, {"city": "Rome"}]
        assert len({call.id for call in calls}) == 2
    asked: Any = client.responses.create(
        model="test-model", input="The weather?", tools=[{"type": "function", **WEATHER["function"]}]
    )
    assert [json.loads(item.arguments) for item in asked.output] == [{"city": "Oslo"}, {"city": "Rome"}]


def test_tool_calls_and_results_are_passed_through(client: openai.OpenAI, model: ModelServer) -> None:
    model.script(CALLS, CALLS, says("It rains in Oslo."))
    answer = client.chat.completions.create(
        model="test-model", messages=HELLO, tools=[WEATHER], tool_choice="required"
    )
    [call] = answer.choices[0].message.tool_calls or []
    assert answer.choices[0].finish_reason == "tool_calls"
    assert (call.id, call.function.name, json.loads(call.function.arguments)) == (
        "call_1",
        "weather",
        {"city": "Oslo"},
    )
    sent = model.requests_of("chat")[-1].body
    assert sent["tools"] == [WEATHER]
    assert sent["tool_choice"] == "required"
    with client.chat.completions.stream(model="test-model", messages=HELLO, tools=[WEATHER]) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.tool_calls[0].function.name == "weather"
    said = answer.choices[0].message.model_dump()
    messages = [*HELLO, said, {"role": "tool", "tool_call_id": "call_1", "content": "Rain."}]
    told = client.chat.completions.create(model="test-model", messages=messages, tools=[WEATHER])
    assert told.choices[0].message.content == "It rains in Oslo."
    assert model.requests_of("chat")[-1].body["messages"][-1] == messages[-1]


def test_images_reach_the_model_unchanged(client: openai.OpenAI, model: ModelServer) -> None:
    content = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": picture()}},
    ]
    client.chat.completions.create(model="test-model", messages=[{"role": "user", "content": content}])
    assert model.requests_of("chat")[-1].body["messages"] == [{"role": "user", "content": content}]


def test_an_image_at_a_forbidden_address_is_not_fetched(client: openai.OpenAI, model: ModelServer) -> None:
    content: Any = [{"type": "image_url", "image_url": {"url": f"{model.url}/secret.png"}}]
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="test-model", messages=[{"role": "user", "content": content}])
    assert "data URL" in str(refused.value)
    assert model.requests_of("other") == []


def test_a_conversation_is_stored_and_continued(service: Service, model: ModelServer, guest: str) -> None:
    mine = client_of(service, guest)
    model.script(says("Noted."), says("It is BLUE-42."))
    system = {"role": "system", "content": "Answer like a pirate."}
    first = mine.chat.completions.with_raw_response.create(
        model="test-model",
        messages=[system, {"role": "user", "content": "My key is BLUE-42."}],
        extra_headers={"X-Conversation-Id": "new"},
    )
    name = first.headers["X-Conversation-Id"]
    assert first.parse().choices[0].message.content == "Noted."
    stream = mine.chat.completions.create(
        model="test-model",
        messages=[system, {"role": "user", "content": "What is my key?"}],
        stream=True,
        extra_body={"conversation": name},
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert text == "It is BLUE-42."
    sent = [
        (message["role"], message["content"]) for message in model.requests_of("chat")[-1].body["messages"]
    ]
    assert ("user", "My key is BLUE-42.") in sent
    assert sent.count(("system", "Answer like a pirate.")) == 1
    assert sent[-1] == ("user", "What is my key?")
    [kept] = conversations(service, guest)
    page = service.client_of(guest).get(f"/api/v1/conversations/{kept['id']}/messages").json()
    assert [item["role"] for item in page["items"]] == ["system", "user", "assistant", "user", "assistant"]


def test_the_browser_sees_a_turn_while_it_is_answered(
    service: Service, model: ModelServer, guest: str
) -> None:
    api = service.client_of(guest)
    conversation_id = api.post("/api/v1/conversations", json={}).json()["id"]
    model.script(says("One two three four five.", hold_after=2))
    seen: list[str] = []

    async def both() -> None:
        async with httpx2.AsyncClient(headers=dict(api.headers), timeout=120) as reader:
            events = f"{service.url}/api/v1/conversations/{conversation_id}/events"
            async with reader.stream("GET", events) as watched:
                lines = watched.aiter_lines()
                await anext(lines)
                asked = asyncio.to_thread(
                    client_of(service, guest).chat.completions.create,
                    model="test-model",
                    messages=HELLO,
                    extra_headers={"X-Conversation-Id": conversation_id},
                )
                task = asyncio.create_task(asked)
                async for line in lines:
                    seen.append(line)
                    if line == "event: text.delta":
                        break
                assert not task.done()
                model.release()
                assert (await task).choices[0].message.content == "One two three four five."

    run_apart(both())
    assert "event: run.started" in seen


def test_a_turn_resent_with_its_key_is_stored_once(service: Service, model: ModelServer, guest: str) -> None:
    mine = client_of(service, guest)
    name = mine.chat.completions.with_raw_response.create(
        model="test-model", messages=HELLO, extra_headers={"X-Conversation-Id": "new"}
    ).headers["X-Conversation-Id"]
    model.script(says("Once."))
    for _ in range(2):
        headers = {"X-Conversation-Id": name, "Idempotency-Key": "the-same"}
        again = mine.chat.completions.create(model="test-model", messages=HELLO, extra_headers=headers)
        assert again.choices[0].message.content == "Once."
    elsewhere = {"X-Conversation-Id": "new", "Idempotency-Key": "the-same"}
    with pytest.raises(openai.BadRequestError) as other:
        mine.chat.completions.create(model="test-model", messages=HELLO, extra_headers=elsewhere)
    assert other.value.code == "idempotency_mismatch"
    [kept] = conversations(service, guest)
    assert kept["message_count"] == 4


def test_an_empty_idempotency_key_is_refused(service: Service, model: ModelServer, guest: str) -> None:
    api = service.client_of(guest)
    for address, said in (("chat/completions", {"messages": HELLO}), ("responses", {"input": "Hello"})):
        body = {"model": "test-model", "conversation": "new", **said}
        refused = api.post(f"/v1/{address}", json=body, headers={"Idempotency-Key": ""})
        assert refused.status_code == 400, refused.text
    assert conversations(service, guest) == []


def test_a_refusal_in_the_history_reaches_the_model_as_text(
    client: openai.OpenAI, model: ModelServer
) -> None:
    refused: Any = {"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]}
    asked: Any = [*HELLO, refused, {"role": "user", "content": "Why?"}]
    client.chat.completions.create(model="test-model", messages=asked)
    assert model.requests_of("chat")[-1].body["messages"][1]["content"] == "I will not."
    client.responses.create(model="test-model", input=asked, store=False)
    assert model.requests_of("chat")[-1].body["messages"][1]["content"] == "I will not."


def test_a_failed_turn_is_not_sent_again_by_the_client(
    service: Service, model: ModelServer, guest: str
) -> None:
    model.script(ERRORS["wrong_key"]())
    with pytest.raises(openai.InternalServerError):
        client_of(service, guest, max_retries=2).chat.completions.create(
            model="test-model", messages=HELLO, extra_headers={"X-Conversation-Id": "new"}
        )
    [kept] = conversations(service, guest)
    assert kept["message_count"] == 2


def test_other_users_cannot_continue_a_conversation(
    service: Service, model: ModelServer, client: openai.OpenAI
) -> None:
    mine = client.chat.completions.with_raw_response.create(
        model="test-model", messages=HELLO, extra_headers={"X-Conversation-Id": "new"}
    )
    with pytest.raises(openai.NotFoundError):
        client_of(service, CHARLIE).chat.completions.create(
            model="test-model",
            messages=HELLO,
            extra_headers={"X-Conversation-Id": mine.headers["X-Conversation-Id"]},
        )


def test_naming_two_conversations_is_refused(
    service: Service, model: ModelServer, client: openai.OpenAI
) -> None:
    with pytest.raises(openai.BadRequestError, match="Name the conversation once"):
        client.chat.completions.create(
            model="test-model",
            messages=HELLO,
            extra_headers={"X-Conversation-Id": "new"},
            extra_body={"conversation": "conv_00000000000070008000000000000000"},
        )


@pytest.mark.parametrize(
    ("problem", "kind", "code"),
    [
        ("quota", openai.RateLimitError, "insufficient_quota"),
        ("overflow_openai", openai.BadRequestError, "context_length_exceeded"),
        ("wrong_key", openai.InternalServerError, "auth"),
    ],
)
def test_failures_of_the_model_have_openais_shape(
    service: Service, model: ModelServer, problem: str, kind: type[openai.APIStatusError], code: str
) -> None:
    model.script(*[ERRORS[problem]()] * 4)
    with pytest.raises(kind) as failed:
        client_of(service, max_retries=0).chat.completions.create(model="test-model", messages=HELLO)
    assert failed.value.code == code
    assert "stored" not in failed.value.message


def test_an_error_in_the_middle_ends_the_stream(service: Service, model: ModelServer) -> None:
    model.script(says("One two three four five.", fault="cut", fault_after=2))
    stream = client_of(service).chat.completions.create(model="test-model", messages=HELLO, stream=True)
    with pytest.raises(openai.APIError):
        list(stream)


def test_errors_of_invalid_requests_name_the_field(service: Service, client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as unknown:
        client.chat.completions.create(model="test-model", messages=HELLO, extra_body={"temprature": 1})
    assert (unknown.value.param, unknown.value.code) == ("temprature", "unknown_parameter")
    with pytest.raises(openai.BadRequestError) as many:
        client.chat.completions.create(model="test-model", messages=HELLO, n=3)
    assert many.value.param == "n"
    with pytest.raises(openai.AuthenticationError) as stranger:
        openai.OpenAI(base_url=f"{service.url}/v1", api_key="sk-wrong").models.list()
    assert stranger.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError) as nowhere:
        client.chat.completions.create(model="no-such-model", messages=HELLO)
    assert nowhere.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("field", "value", "param", "told"),
    [
        (
            "messages",
            said([{"type": "input_audio"}]),
            "messages.0.content.0",
            "'text', 'refusal', 'image_url'",
        ),
        ("messages", said([{"type": "text", "text": 5}]), "messages.0.content.0.text", "valid string"),
        ("messages", said(5), "messages.0.content", "valid string"),
        ("stop", ["a"] * 5, "stop", "at most 4"),
        ("max_tokens", 0, "max_tokens", "greater than or equal to 1"),
        ("tools", [{"type": "custom", "custom": {"name": "sql"}}], "tools.0", "the type 'custom'"),
    ],
)
def test_an_invalid_value_gets_a_specific_error_even_if_several_types_are_allowed(
    service: Service, field: str, value: Any, param: str, told: str
) -> None:
    body = {"messages": HELLO, field: value}
    error = service.client_of(ALICE).post("/v1/chat/completions", json=body).json()["error"]
    assert error["param"] == param
    assert told in error["message"]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1"), ("POST", "/v1/nothing"), ("DELETE", "/v1/models")]
)
def test_everything_below_v1_is_json(service: Service, method: str, path: str) -> None:
    answer = service.client_of(ALICE).request(method, path)
    assert answer.status_code in (404, 405)
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_a_token_without_the_scope_is_refused(service: Service) -> None:
    reader = openai.OpenAI(base_url=f"{service.url}/v1", api_key=service.token_of(ALICE, "read"))
    assert list(reader.models.list())
    with pytest.raises(openai.PermissionDeniedError):
        reader.chat.completions.create(model="test-model", messages=HELLO)


def test_a_call_counts_if_the_client_disconnects(service: Service, model: ModelServer, guest: str) -> None:
    model.script(says("One two three four five.", hold_after=3))
    stream = client_of(service, guest).chat.completions.create(
        model="test-model", messages=HELLO, stream=True
    )
    for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    stream.close()
    usage = service.client_of(guest)
    wait_for(lambda: usage.get("/api/v1/usage").json()["total"]["calls"] == 1, what="the call in the ledger")


def test_a_call_counts_if_the_client_disconnects_before_the_first_word(
    service: Service, model: ModelServer, guest: str
) -> None:
    model.script(says("One two three four five.", hold_after=0))
    asked = len(model.requests)
    body = json.dumps({"messages": HELLO}).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {service.tokens[guest]}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(head.encode() + body)
        model.wait_until(lambda server: len(server.requests) > asked)
    usage = service.client_of(guest)
    wait_for(lambda: usage.get("/api/v1/usage").json()["total"]["calls"] == 1, what="the call in the ledger")
    assert usage.get("/api/v1/usage").json()["total"]["input_tokens"] > 0


def test_a_refused_call_is_not_counted(service: Service, model: ModelServer, guest: str) -> None:
    model.script(ERRORS["quota"]())
    with pytest.raises(openai.RateLimitError):
        client_of(service, guest, max_retries=0).chat.completions.create(model="test-model", messages=HELLO)
    assert service.client_of(guest).get("/api/v1/usage").json()["total"]["calls"] == 0


def test_the_async_client_can_create_and_stream_completions(service: Service, model: ModelServer) -> None:
    model.script(says("Hello there."), says("Hello again."))

    async def ask() -> tuple[str | None, str]:
        async with openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key=service.tokens[ALICE]) as client:
            answer = await client.chat.completions.create(model="test-model", messages=HELLO)
            stream = await client.chat.completions.create(model="test-model", messages=HELLO, stream=True)
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
            return answer.choices[0].message.content, "".join(pieces)

    assert run_apart(ask()) == ("Hello there.", "Hello again.")


def test_embeddings_come_from_the_operators_endpoint(client: openai.OpenAI) -> None:
    found = client.embeddings.create(model="test-vectors", input=["parrot", "owl"])
    floats = client.embeddings.create(model="test-vectors", input="parrot", encoding_format="float")
    assert len(found.data) == 2
    assert found.data[0].embedding == pytest.approx(floats.data[0].embedding, rel=1e-6)
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="test-model", input="parrot")


def test_revoking_a_token_ends_its_streams_at_once_and_no_others(
    service: Service, model: ModelServer, guest: str
) -> None:
    """Heartbeats, which check the rights too, come only every ten minutes here."""
    model.script(
        says("One two three four five.", hold_after=3), says("One two three four five.", hold_after=3)
    )
    page = BrowserSession(service, guest)
    made = page.call("POST", "/api/v1/tokens", scopes=["chat"]).json()
    revoked = openai.OpenAI(base_url=f"{service.url}/v1", api_key=made["token"], timeout=60, max_retries=0)
    streams = [
        each.chat.completions.create(model="test-model", messages=HELLO, stream=True)
        for each in (revoked, client_of(service, guest))
    ]
    for stream in streams:
        next(chunk for chunk in stream if chunk.choices[0].delta.content)
    assert page.call("DELETE", f"/api/v1/tokens/{made['id']}").status_code == 204
    assert "stop" not in [chunk.choices[0].finish_reason for chunk in streams[0]]
    model.release()
    assert "stop" in [chunk.choices[0].finish_reason for chunk in streams[1] if chunk.choices]
