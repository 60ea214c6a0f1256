"""CPU per streamed token: our raw reader compared with the openai SDK's parsed chunks, on the same streams.

python -m benchmarks.reader [--streams 50] [--rate 50] [--tokens 200]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable

import openai

from agents.chat_models.openai_model import OpenAIModel
from agents.types import ModelEndpoint, ModelRequest, TextDelta
from benchmarks.stage import model_server
from memory.tokens import text_message

QUESTION = "Tell me something long."
ReadOne = Callable[[], Awaitable[int]]


def raw_reader(base_url: str) -> ReadOne:
    model = OpenAIModel(ModelEndpoint("test-model", base_url))
    request = ModelRequest((text_message("user", QUESTION),), 1_000)

    async def read() -> int:
        return sum([len(item.text) async for item in model.stream(request) if isinstance(item, TextDelta)])

    return read


def parsed_reader(base_url: str, http: object) -> ReadOne:
    client = openai.AsyncOpenAI(api_key="none", base_url=base_url, http_client=http, max_retries=0)  # type: ignore[arg-type]

    async def read() -> int:
        stream = await client.chat.completions.create(
            model="test-model",
            messages=[{"role": "user", "content": QUESTION}],
            stream=True,
            max_tokens=1_000,
        )
        return sum([len(chunk.choices[0].delta.content or "") async for chunk in stream if chunk.choices])

    return read


async def measure(read: ReadOne, streams: int) -> tuple[float, int]:
    """Return (CPU seconds of this process, characters read). A first read opens the connection and is not counted."""
    await read()
    before = time.process_time()
    lengths = await asyncio.gather(*(read() for _ in range(streams)))
    return time.process_time() - before, sum(lengths)


async def compare(base_url: str, streams: int, tokens: int) -> None:
    raw_s, raw_chars = await measure(raw_reader(base_url), streams)
    async with openai.DefaultAioHttpClient() as http:
        parsed_s, parsed_chars = await measure(parsed_reader(base_url, http), streams)
    assert raw_chars == parsed_chars
    count = streams * tokens
    print(f"raw reader     {raw_s / count * 1000:.3f} ms of CPU a token")
    print(f"parsed chunks  {parsed_s / count * 1000:.3f} ms of CPU a token")
    print(f"ratio          1 : {parsed_s / raw_s:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--tokens", type=int, default=200)
    asked = parser.parse_args()
    with model_server("--rate", str(asked.rate), "--tokens", str(asked.tokens)) as server:
        asyncio.run(compare(f"{server.url}/v1", asked.streams, asked.tokens))


if __name__ == "__main__":
    main()
