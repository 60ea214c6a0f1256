"""If a provider's window is smaller than configured, it rejects one request per conversation, not one per turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send
from tests.servers.openai_server import ModelServer

if TYPE_CHECKING:
    from chatapp.providers.models import ModelConfig

SMALLER = 9_000
LONG = " ".join(f"QX-{number}" for number in range(2_000))
"""About 4,000 tokens."""


async def test_a_window_named_by_the_provider_applies_from_the_next_answer_on(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        for _ in range(3):
            assert (await send(alice_program, conversation, LONG)).status_code == 200
        model_server.window = SMALLER
        model_server.requests.clear()
        refused = await send(alice_program, conversation, "And now?")
        assert refused.json()["message"]["status"] == "complete"
        assert len(model_server.requests_of("chat")) == 2
        model_server.requests.clear()
        for _ in range(2):
            assert (await send(alice_program, conversation, "And again?")).json()["message"][
                "status"
            ] == "complete"
        assert len(model_server.requests_of("chat")) == 2, "none is refused any more"


async def test_a_window_named_by_the_provider_applies_even_if_the_answer_failed(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        model_server.window = 6_000
        asked = " ".join([LONG] * 2)
        assert (await send(alice_program, conversation, asked)).status_code == 502
        assert len(model_server.requests_of("chat")) == 1
        again = await send(alice_program, conversation, asked)
        assert again.status_code == 413
        assert len(model_server.requests_of("chat")) == 1, "what is too large is not sent again"
