"""OpenAIModel against a server on a real socket: successful calls and every kind of failure."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace

import pytest

from agents.chat_models.openai_model import MAX_BYTES_PER_S, OpenAIModel
from agents.chat_models.probing import list_models, probe_model
from agents.chat_models.usage import COUNTED_CHARS, OutputText
from agents.errors import ModelError
from agents.types import ModelEndpoint, ModelRequest, TextDelta, TokenUsage, ToolCallDelta
from memory.tokens import estimate_text, text_message
from tests.agents.asking import ask_for, collect, end_of, reasoning_of, text_of
from tests.servers.behaviour import ERRORS, Behaviour, fails, says
from tests.servers.openai_server import ModelServer

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@contextlib.asynccontextmanager
async def serving(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """Yield the address of a server that handles each connection with `answer`."""
    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    finally:
        listener.close()


# --- successful calls


async def test_an_answer_streams_and_ends_with_the_providers_count(
    server: ModelServer, model: OpenAIModel
) -> None:
    server.script(says("Grüße, 世界!  Two  spaces\n\nand lines.", prompt_tokens=42, cached_tokens=40))
    items, error = await collect(model, ask_for())
    assert error is None
    assert text_of(items) == "Grüße, 世界!  Two  spaces\n\nand lines."
    assert end_of(items).usage == TokenUsage(input_tokens=42, output_tokens=6, cached_tokens=40, exact=True)


async def test_the_server_gets_the_messages_and_the_key(server: ModelServer, model: OpenAIModel) -> None:
    await collect(model, ask_for("What is 2 + 2?", limit=77))
    [request] = server.requests_of("chat")
    assert request.headers["authorization"] == "Bearer sk-test"
    assert request.body["model"] == "test-model"
    assert request.body["max_tokens"] == 77
    assert request.messages[0]["role"] == "system"
    assert request.messages[-1] == {"role": "user", "content": "What is 2 + 2?"}


async def test_text_arrives_while_the_model_is_still_writing(server: ModelServer, model: OpenAIModel) -> None:
    server.script(Behaviour(text="one two three", hold_after=1))
    seen: list[str] = []
    async for item in model.stream(ask_for()):
        if isinstance(item, TextDelta):
            seen.append(item.text)
            server.release()
    assert seen[0] == "one"
    assert "".join(seen) == "one two three"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_separate_from_the_answer(
    server: ModelServer, model: OpenAIModel, field: str
) -> None:
    server.script(Behaviour(text="Four.", reasoning="Two and two", reasoning_field=field))  # type: ignore[arg-type]
    items, _ = await collect(model, ask_for())
    assert (reasoning_of(items), text_of(items)) == ("Two and two", "Four.")


async def test_tool_calls_are_passed_on(server: ModelServer, model: OpenAIModel) -> None:
    server.script(
        Behaviour(tool_calls=({"id": "c1", "name": "clock", "arguments": {"zone": "Europe/Berlin"}},))
    )
    items, _ = await collect(model, ask_for())
    calls = [item for item in items if isinstance(item, ToolCallDelta)]
    assert (calls[0].call_id, calls[0].name) == ("c1", "clock")
    assert "".join(call.arguments for call in calls) == '{"zone": "Europe/Berlin"}'
    assert end_of(items).reason == "tool_calls"


async def test_an_answer_that_reaches_its_limit_ends_with_the_reason_length(
    server: ModelServer, model: OpenAIModel
) -> None:
    server.script(says("half an", finish_reason="length"))
    items, _ = await collect(model, ask_for())
    assert end_of(items).reason == "length"


async def test_an_endless_answer_is_stopped_beyond_its_token_limit(
    server: ModelServer, model: OpenAIModel
) -> None:
    server.script(says("and so on", is_endless=True))
    request = ask_for(limit=100)
    items, _ = await collect(model, request)
    assert end_of(items).reason == "bound"
    assert 16_200 < estimate_text(text_of(items)) < 20_000
    await asyncio.to_thread(server.wait_until, lambda server: "lost" in server.requests[-1].times)


async def test_an_answer_within_its_limit_by_the_providers_count_is_not_cut(
    server: ModelServer, model: OpenAIModel
) -> None:
    text = "пере" * 4_000
    server.script(says(text))
    request = replace(ask_for(), max_output_tokens=estimate_text(text) // 2)
    items, _ = await collect(model, request)
    assert (end_of(items).reason, text_of(items)) == ("stop", text)


@pytest.mark.parametrize(
    "endless",
    [
        says("ж у", is_endless=True),
        Behaviour(text="", reasoning="hm hm", tokens=1, is_endless=True),
        Behaviour(tool_calls=({"name": "clock", "arguments": "x" * 24},), is_endless=True),
        says("x" * 100_000),
    ],
)
async def test_no_answer_exceeds_its_limit_in_bytes(
    server: ModelServer, model: OpenAIModel, endless: Behaviour
) -> None:
    server.script(endless)
    small = OpenAIModel(replace(model.endpoint, max_answer_bytes=20_000))
    items, _ = await collect(small, replace(ask_for(), max_output_tokens=0))
    assert end_of(items).reason == "bound"
    said = text_of(items) + reasoning_of(items)
    said += "".join(item.arguments for item in items if isinstance(item, ToolCallDelta))
    assert len(said.encode()) < 25_000


async def test_an_answer_that_ends_within_a_line_keeps_the_limit_in_bytes(model: OpenAIModel) -> None:
    event = {"choices": [{"delta": {"content": "x" * 100_000}, "finish_reason": "stop"}]}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM_HEAD + b"data: " + json.dumps(event).encode())
        writer.close()

    async with serving(answer) as address:
        small = OpenAIModel(replace(model.endpoint, base_url=address, max_answer_bytes=20_000))
        items, _ = await collect(small, replace(ask_for(), max_output_tokens=0))
    assert end_of(items).reason == "bound"
    assert len(text_of(items)) == 20_000


async def test_comments_after_the_end_do_not_keep_the_answer_open(model: OpenAIModel) -> None:
    event = {"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM_HEAD + b"data: " + json.dumps(event).encode() + b"\n\ndata: [DONE]\n\n")
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b": still here\n\n")
                await writer.drain()
                await asyncio.sleep(0.01)

    async with serving(answer) as address:
        asked = collect(OpenAIModel(replace(model.endpoint, base_url=address)), ask_for())
        items, error = await asyncio.wait_for(asked, 30)
    assert error is None
    assert (text_of(items), end_of(items).reason) == ("Yes.", "stop")


async def test_a_server_that_writes_faster_than_any_model_is_read_with_pauses(
    server: ModelServer, model: OpenAIModel
) -> None:
    """Without pauses, two servers that send nothing but comments would block all other answers for seconds."""
    server.script(says("x" * 1_000_000))
    began = time.monotonic()
    items, _ = await collect(model, replace(ask_for(), max_output_tokens=0))
    assert len(text_of(items)) == 1_000_000
    assert time.monotonic() - began > 900_000 / MAX_BYTES_PER_S  # the least sum of the pauses


def test_counted_text_is_not_kept_in_memory() -> None:
    output = OutputText()
    for _ in range(50_000):
        output.add(TextDelta("word "))
        assert sum(map(len, output.text._pieces)) < COUNTED_CHARS
    assert output.count() == pytest.approx(estimate_text("word " * 50_000), rel=0.01)


async def test_usage_is_estimated_if_the_server_reports_none(server: ModelServer, model: OpenAIModel) -> None:
    server.script(says("one two three", sends_usage=False))
    items, _ = await collect(model, ask_for("A question of some length"))
    usage = end_of(items).usage
    assert not usage.exact
    assert usage.input_tokens > 10
    assert usage.output_tokens >= 3


async def test_closing_the_iterator_ends_the_call(server: ModelServer, model: OpenAIModel) -> None:
    server.script(Behaviour(tokens=1000, hold_after=5))
    stream = model.stream(ask_for())
    while not isinstance(await anext(stream), TextDelta):
        pass
    await stream.aclose()
    await asyncio.to_thread(server.wait_until, lambda it: "lost" in it.requests[0].times)


async def test_concurrent_streams_do_not_mix(server: ModelServer, model: OpenAIModel) -> None:
    server.script(*(lambda request: says("You said " + request.messages[-1]["content"]) for _ in range(40)))
    answers = await asyncio.gather(*(collect(model, ask_for(f"number {n}")) for n in range(40)))
    assert [text_of(items) for items, _ in answers] == [f"You said number {n}" for n in range(40)]


def test_each_event_loop_has_its_own_connections(server: ModelServer, model: OpenAIModel) -> None:
    for _ in range(3):
        items, error = asyncio.run(collect(model, ask_for()))
        assert error is None
        assert text_of(items)


# --- servers with their own dialect


@pytest.mark.parametrize("field", ["stream_options", "max_tokens", "temperature"])
async def test_a_refused_parameter_is_left_out_in_later_requests_too(
    server: ModelServer, model: OpenAIModel, field: str
) -> None:
    server.defaults["chat"] = Behaviour(text="fine", error_if_field=field)
    request = replace(ask_for(), temperature=0.5)
    for _ in range(2):
        items, error = await collect(model, request)
        assert error is None
        assert text_of(items) == "fine"
    assert [field in asked.body for asked in server.requests] == [True, False, False]


async def test_an_output_limit_that_is_too_high_is_lowered_to_the_one_that_the_server_names(
    server: ModelServer, model: OpenAIModel
) -> None:
    message = (
        "max_tokens is too large: 64000. This model supports at most 4096 completion tokens, whereas you …"
    )
    server.script(fails(400, message), says("fine"))
    items, _ = await collect(model, ask_for(limit=64_000))
    assert text_of(items) == "fine"
    assert server.requests[-1].body["max_tokens"] == 4096


async def test_a_prompt_that_fits_is_retried_with_a_lower_output_limit(
    server: ModelServer, model: OpenAIModel
) -> None:
    message = (
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (1000 in the messages, "
        "8000 in the completion). Please reduce the length of the messages or completion."
    )
    server.script(fails(400, message), says("fine"))
    items, _ = await collect(model, ask_for(limit=8_000))
    assert text_of(items) == "fine"
    assert server.requests[-1].body["max_tokens"] == 6832


async def test_roles_are_merged_for_a_server_that_requires_alternation(
    server: ModelServer, model: OpenAIModel
) -> None:
    refusal = fails(400, "Conversation roles must alternate user/assistant/user/assistant/...")
    server.script(refusal, says("fine"))
    items, _ = await collect(model, ask_for("Q", text_message("user", "Summary")))
    assert text_of(items) == "fine"
    assert [wire["role"] for wire in server.requests[-1].messages] == ["system", "user"]


async def test_repeated_refusals_fail_after_a_few_attempts(server: ModelServer, model: OpenAIModel) -> None:
    server.defaults["chat"] = fails(
        400, "Unknown parameter: max_tokens, max_completion_tokens, stream_options"
    )
    _, error = await collect(model, ask_for())
    assert error is not None
    assert error.category == "bad_request"
    assert len(server.requests) <= 6


# --- failures


@pytest.mark.parametrize(
    ("script", "category"),
    [
        (ERRORS["wrong_key"], "auth"),
        (ERRORS["no_model"], "not_found"),
        (ERRORS["rate_limit"], "rate_limit"),
        (ERRORS["quota"], "quota"),
        (ERRORS["no_money"], "quota"),
        (ERRORS["server"], "server"),
        (ERRORS["html_502"], "server"),
        (ERRORS["overflow_openai"], "overflow"),
        (ERRORS["overflow_anthropic"], "overflow"),
        (ERRORS["overflow_llamacpp"], "overflow"),
        (lambda: Behaviour(fault="html"), "bad_response"),
        (lambda: Behaviour(fault="empty"), "bad_response"),
        (lambda: Behaviour(fault="refuse"), "connection"),
        (lambda: Behaviour(fault="cut", fault_after=0), "connection"),
    ],
)
async def test_a_failure_before_any_text_has_a_category_and_a_sentence(
    server: ModelServer, model: OpenAIModel, script: Callable[[], Behaviour], category: str
) -> None:
    server.script(script())
    items, error = await collect(model, ask_for())
    assert items == []
    assert error is not None
    assert error.category == category
    assert error.message.endswith(".")
    assert "stored" in error.message


@pytest.mark.parametrize(
    ("fault", "category"),
    [("cut", "cut"), ("no_finish", "cut"), ("broken_json", "cut"), ("error_chunk", "server")],
)
async def test_a_failure_in_mid_answer_keeps_the_text_so_far(
    server: ModelServer, model: OpenAIModel, fault: str, category: str
) -> None:
    server.script(says("one two three four five", fault=fault))
    items, error = await collect(model, ask_for())
    assert text_of(items) == "one two three"
    assert error is not None
    assert error.category == category


async def test_the_window_named_by_an_overflow_is_passed_on(server: ModelServer, model: OpenAIModel) -> None:
    server.script(ERRORS["overflow_openai"]())
    _, error = await collect(model, ask_for())
    assert error is not None
    assert error.window_tokens == 8192


async def test_the_wait_requested_by_a_rate_limit_is_passed_on(
    server: ModelServer, model: OpenAIModel
) -> None:
    server.script(ERRORS["rate_limit"]())
    _, error = await collect(model, ask_for())
    assert error is not None
    assert (error.retry_after_s, error.status) == (6.0, 429)


async def test_a_model_that_sends_no_first_token_times_out(server: ModelServer, model: OpenAIModel) -> None:
    server.script(Behaviour(hold_after=0))
    hasty = OpenAIModel(replace(model.endpoint, first_token_timeout_s=0.2))
    items, error = await collect(hasty, ask_for())
    assert items == []
    assert error is not None
    assert error.category == "timeout"


async def test_an_answer_that_pauses_too_long_has_stalled(server: ModelServer, model: OpenAIModel) -> None:
    server.script(Behaviour(text="one two three", hold_after=2))
    hasty = OpenAIModel(replace(model.endpoint, stall_timeout_s=0.2))
    items, error = await collect(hasty, ask_for())
    assert text_of(items) == "one two"
    assert error is not None
    assert error.category == "stalled"


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Yield a port that is bound but not listening, so that no other process can take it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


async def test_an_unreachable_server_is_a_connection_error(closed_port: int) -> None:
    model = OpenAIModel(ModelEndpoint("m", f"http://127.0.0.1:{closed_port}/v1"))
    _, error = await collect(model, ask_for())
    assert error is not None
    assert error.category == "connection"
    assert "refused" in error.provider_words.lower() or "connect" in error.provider_words.lower()


@pytest.mark.parametrize("address", ["nonsense", "ftp://127.0.0.1/v1", "http://127.0.0.1:1\n"])
async def test_an_invalid_address_is_not_found(address: str) -> None:
    _, error = await collect(OpenAIModel(ModelEndpoint("m", address)), ask_for())
    assert error is not None
    assert error.category == "not_found"


async def test_an_invalid_gzip_body_is_a_bad_response() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\nnot packed")
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    _, error = await collect(OpenAIModel(ModelEndpoint("m", f"http://127.0.0.1:{port}/v1")), ask_for())
    listener.close()
    assert error is not None
    assert error.category == "bad_response"


async def test_a_server_that_does_not_speak_http_is_a_connection_error(server: ModelServer) -> None:
    async def answer_rudely(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        writer.close()

    listener = await asyncio.start_server(answer_rudely, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    _, error = await collect(OpenAIModel(ModelEndpoint("m", f"http://127.0.0.1:{port}/v1")), ask_for())
    listener.close()
    assert error is not None
    assert error.category == "connection"


@pytest.mark.parametrize("charset", ["base64", "undefined", "rot13", "utf-16"])
@pytest.mark.parametrize("path", ["chat", "models"])
async def test_an_endless_refusal_is_read_in_part_whatever_its_charset(charset: str, path: str) -> None:
    closed = asyncio.Event()

    async def refuse_for_ever(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 401 No\r\nContent-Type: text/plain; charset={charset}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        try:
            while True:
                writer.write(b"\x95 wrong" * 1_000)
                await writer.drain()
        except ConnectionError:
            closed.set()

    listener = await asyncio.start_server(refuse_for_ever, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    endpoint = ModelEndpoint("m", f"http://127.0.0.1:{port}/v1", "sk-test", first_token_timeout_s=30.0)
    if path == "chat":
        _, error = await collect(OpenAIModel(endpoint), ask_for())
    else:
        with pytest.raises(ModelError) as caught:
            await list_models(endpoint)
        error = caught.value
    listener.close()
    assert error is not None
    assert error.category == "auth"
    await asyncio.wait_for(closed.wait(), 10)


async def test_a_redirect_is_not_followed_with_the_key(server: ModelServer, model: OpenAIModel) -> None:
    server.script(Behaviour(status=307, error="moved"))
    _, error = await collect(model, ask_for())
    assert error is not None
    assert error.category == "not_found"
    assert len(server.requests) == 1


async def test_a_thousand_messages_do_not_block_the_event_loop(
    server: ModelServer, model: OpenAIModel
) -> None:
    history = tuple(text_message("user", f"message {n}") for n in range(1_000))
    request = ModelRequest(history, 100)
    await collect(model, request)
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    watcher = asyncio.create_task(watch())
    await collect(model, request)
    watcher.cancel()
    assert longest < 0.1  # OpenAI's SDK would take longer to transform the messages


LEAKING = {"error": {"message": "Key sk-test is unknown at http://10.1.2.3:8000 on gpu-7.models.internal"}}


@pytest.mark.parametrize(
    "behaviour", [Behaviour(status=401, error=LEAKING), Behaviour(fault="error_chunk", error=LEAKING)]
)
async def test_keys_and_hosts_in_a_providers_error_reach_neither_users_nor_log_nor_probe(
    server: ModelServer, model: OpenAIModel, behaviour: Behaviour, caplog: pytest.LogCaptureFixture
) -> None:
    server.defaults["chat"] = behaviour
    _, error = await collect(model, ask_for())
    assert error is not None
    probe = await probe_model(model.endpoint)
    told = [str(error), error.detail, error.provider_words, probe.sentence, caplog.text]
    for secret in ("sk-test", "10.1.2.3", "gpu-7"):
        assert not [text for text in told if secret in text]
    assert "is unknown" in caplog.text
    assert "is unknown" not in f"{error} {error.detail}"


LONG_KEY = "correct-horse-battery-staple"
CUT_IN_KEY = "word " * 117 + LONG_KEY


@pytest.mark.parametrize(
    "behaviour",
    [
        fails(400, CUT_IN_KEY),
        Behaviour(fault="error_chunk", error={"error": {"message": CUT_IN_KEY}}),
    ],
)
async def test_a_key_that_is_cut_with_the_providers_words_reaches_no_log(
    server: ModelServer, behaviour: Behaviour, caplog: pytest.LogCaptureFixture
) -> None:
    server.defaults["chat"] = behaviour
    model = OpenAIModel(ModelEndpoint("test-model", server.base_url, LONG_KEY))
    _, error = await collect(model, ask_for())
    assert error is not None
    assert "correct" not in error.provider_words + caplog.text


async def test_a_key_in_a_page_instead_of_an_answer_reaches_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM_HEAD + CUT_IN_KEY.removeprefix("word " * 5).encode())
        writer.close()

    async with serving(answer) as address:
        _, error = await collect(OpenAIModel(ModelEndpoint("m", address, LONG_KEY)), ask_for())
    assert error is not None
    assert "word" in caplog.text
    assert "correct" not in error.provider_words + caplog.text
