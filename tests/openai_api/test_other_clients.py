"""Two third-party clients of the OpenAI API, configured only with our address and key."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ALICE
from tests.servers.service import Service


def test_the_llm_command_continues_the_conversation_of_a_header(
    service: Service, model: ModelServer, tmp_path: Path
) -> None:
    conversation_id = service.client_of(ALICE).post("/api/v1/conversations", json={}).json()["id"]
    (tmp_path / "extra-openai-models.yaml").write_text(
        "- model_id: palimpsest\n"
        "  model_name: test-model\n"
        f"  api_base: {service.url}/v1\n"
        "  api_key_name: palimpsest\n"
        f"  headers: {{X-Conversation-Id: {conversation_id}}}\n"
    )
    env = {**os.environ, "LLM_USER_PATH": str(tmp_path), "OPENAI_API_KEY": service.tokens[ALICE]}
    llm = Path(sys.executable).with_name("llm")

    def ask(question: str, *options: str) -> str:
        command = [llm, "-m", "palimpsest", "--key", service.tokens[ALICE], *options, question]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    model.script(says("Noted."), says("It is BLUE-42."))
    assert ask("My key is BLUE-42.") == "Noted."
    assert ask("What is my key?", "--no-stream") == "It is BLUE-42."
    sent = [message["content"] for message in model.requests_of("chat")[-1].body["messages"]]
    assert "My key is BLUE-42." in sent  # llm sent only the second question


def test_langchain_answers_streams_and_calls_tools(service: Service, model: ModelServer) -> None:
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def weather(city: str) -> str:
        """Tell the weather in a city."""
        return f"Rain in {city}."

    asked: dict[str, Any] = {"base_url": f"{service.url}/v1", "api_key": service.tokens[ALICE]}
    chat = ChatOpenAI(model="test-model", **asked)
    calls = ({"id": "call_1", "name": "weather", "arguments": '{"city": "Oslo"}'},)
    called = Behaviour(text="", tool_calls=calls, finish_reason="tool_calls")
    model.script(says("Hello."), says("One two three."), called)
    answer = chat.invoke("Hello")
    assert answer.text == "Hello."
    assert answer.usage_metadata["input_tokens"] > 0
    assert "".join(chunk.text for chunk in chat.stream("Count")) == "One two three."
    [call] = chat.bind_tools([weather]).invoke("The weather in Oslo?").tool_calls
    assert weather.invoke(call["args"]) == "Rain in Oslo."
