"""Responses and conversations, as OpenAI's own client sees them."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from chatapp.features.openai_api.api import ROUTERS
from tests.api.tool_talk import asks_for
from tests.openai_api.conftest import client_of
from tests.openai_api.test_completions import picture
from tests.servers.apart import run_apart
from tests.servers.behaviour import ERRORS, Behaviour, says
from tests.servers.openai_server import ModelServer
from tests.servers.people import ALICE, CHARLIE
from tests.servers.service import Service

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
CALLS = Behaviour(
    text="",
    tool_calls=({"id": "call_1", "name": "weather", "arguments": '{"city":"Oslo"}'},),
    finish_reason="tool_calls",
)


def sent_texts(model: ModelServer) -> list[str]:
    return [str(message.get("content")) for message in model.requests_of("chat")[-1].body["messages"]]


def test_a_response_is_kept_and_continued(service: Service, model: ModelServer, guest: str) -> None:
    mine = client_of(service, guest)
    model.script(says("Noted."), says("It is BLUE-42."))
    first = mine.responses.create(model="test-model", input="My key is BLUE-42.", metadata={"of": "me"})
    assert (first.status, first.output_text) == ("completed", "Noted.")
    assert first.usage
    assert first.usage.input_tokens > 0
    second = mine.responses.create(
        model="test-model", input="What is my key?", previous_response_id=first.id, instructions="Be short."
    )
    assert second.output_text == "It is BLUE-42."
    assert second.conversation == first.conversation
    assert {"My key is BLUE-42.", "Be short.", "What is my key?"} <= set(sent_texts(model))
    again = mine.responses.retrieve(first.id)
    assert (again.output_text, again.metadata, again.status) == ("Noted.", {"of": "me"}, "completed")
    [asked] = mine.responses.input_items.list(first.id, limit=1, order="asc")
    assert asked.content[0].text == "My key is BLUE-42."
    branched = mine.responses.create(model="test-model", input="And now?", previous_response_id=first.id)
    assert branched.conversation == first.conversation
    assert "What is my key?" not in sent_texts(model)


def test_a_history_that_is_sent_back_continues_its_conversation(
    service: Service, model: ModelServer, guest: str
) -> None:
    mine = client_of(service, guest)
    model.script(says("Noted."), says("It is BLUE-42."), says("Blue."))
    talk: list[Any] = [{"role": "user", "content": "My key is BLUE-42."}]
    first = mine.responses.create(model="test-model", input=talk, instructions="Be short.")
    talk += [*first.output, {"role": "user", "content": "What is my key?"}]
    second = mine.responses.create(model="test-model", input=talk, instructions="Be brief.")
    assert second.conversation == first.conversation
    assert [text for text in sent_texts(model) if not text.startswith("Be ")][-3:] == [
        "My key is BLUE-42.",
        "Noted.",
        "What is my key?",
    ]
    told: list[Any] = [talk[0], {"type": "item_reference", "id": first.output[0].id}, talk[-1]]
    told += [
        {"type": "item_reference", "id": second.output[0].id},
        {"role": "user", "content": "Its colour?"},
    ]
    third = mine.responses.create(model="test-model", input=told, instructions="Be blunt.")
    assert (third.conversation, third.store) == (first.conversation, True)
    shown = [text for text in sent_texts(model) if not text.startswith("Be ")]
    assert shown[-3:] == ["What is my key?", "It is BLUE-42.", "Its colour?"]


@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_with_reasoning_between_texts_is_recognised_when_sent_back(
    service: Service, model: ModelServer, guest: str, streams: bool
) -> None:
    mine = client_of(service, guest)
    counting = replace(
        asks_for("calculator", text="Let me count.", expression="6 * 7"), reasoning="A product."
    )
    model.script(counting, says("It is 42.", reasoning="Six sevens."), says("Even."))
    talk: list[Any] = [{"role": "user", "content": "What is 6 times 7?"}]
    if streams:
        with mine.responses.stream(model="test-model", input=talk) as stream:
            first: Any = stream.get_final_response()
    else:
        first = mine.responses.create(model="test-model", input=talk)
    assert first.output_text == "Let me count.\n\nIt is 42."
    assert mine.responses.retrieve(first.id).output_text == first.output_text
    assert "reasoning" in [item.type for item in first.output]
    said = [item.model_dump(exclude_none=True) for item in first.output]
    talk += [*said, {"role": "user", "content": "Is that odd?"}]
    second = mine.responses.create(model="test-model", input=talk)
    assert (second.conversation, second.store) == (first.conversation, True)
    by_name = [talk[0], *({"type": "item_reference", "id": item.id} for item in first.output), talk[-1]]
    model.script(says("No."))
    third = mine.responses.create(model="test-model", input=by_name)
    assert (third.conversation, third.store) == (first.conversation, True)
    with pytest.raises(openai.NotFoundError):
        client_of(service, CHARLIE).responses.create(model="test-model", input=by_name)
    assert len({item.id for item in first.output}) == len(first.output)


def test_a_history_kept_by_the_client_reaches_the_model_unchanged(
    service: Service, model: ModelServer, guest: str
) -> None:
    mine = client_of(service, guest)
    model.script(says("Noted."), says("RED-7."), says("Rain."))
    first = mine.responses.create(model="test-model", input="My key is BLUE-42.")
    [stored] = first.output
    changed = {"role": "assistant", "id": stored.id, "content": "Your key is RED-7."}
    own: list[Any] = [changed, {"role": "user", "content": "What is my key?"}]
    answer = mine.responses.create(model="test-model", input=own)
    assert (answer.output_text, answer.store, answer.conversation) == ("RED-7.", False, None)
    assert sent_texts(model) == ["Your key is RED-7.", "What is my key?"]
    call = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "call_1", "output": "Rain."}
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "I look."}]}
    called = mine.responses.create(model="test-model", input=[own[1], thought, call, result])
    assert (called.output_text, called.store) == ("Rain.", False)
    [calling] = [each for each in model.requests_of("chat")[-1].body["messages"] if each.get("tool_calls")]
    assert calling["reasoning_content"] == "I look."
    with pytest.raises(openai.BadRequestError) as kept:
        mine.responses.create(model="test-model", input=own, store=True)
    assert kept.value.param == "store"
    with pytest.raises(openai.NotFoundError) as unknown:
        mine.responses.create(model="test-model", input=[{"type": "item_reference", "id": "msg_1"}, own[1]])
    assert unknown.value.param == "input"
    with pytest.raises(openai.NotFoundError):
        client_of(service, CHARLIE).responses.create(
            model="test-model", input=[{"type": "item_reference", "id": stored.id}, own[1]]
        )


def test_a_stream_has_the_official_events(service: Service, model: ModelServer, guest: str) -> None:
    model.script(says("One two three.", reasoning="I count."))
    with client_of(service, guest).responses.stream(model="test-model", input="Count") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_text == "One two three."
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert {"response.output_item.added", "response.output_text.delta", "response.content_part.done"} <= set(
        kinds
    )
    assert "response.reasoning_text.delta" in kinds
    numbers = [event.sequence_number for event in events if hasattr(event, "sequence_number")]
    assert numbers == sorted(numbers)
    assert client_of(service, guest).responses.retrieve(final.id).output_text == "One two three."


def test_deleting_a_response_forgets_its_turn(service: Service, model: ModelServer, guest: str) -> None:
    mine = client_of(service, guest)
    first = mine.responses.create(model="test-model", input="Hello PARROT-1.")
    second = mine.responses.create(model="test-model", input="Hello PARROT-2.", previous_response_id=first.id)
    mine.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        mine.responses.retrieve(second.id)
    api = service.client_of(guest)
    [kept] = api.get("/api/v1/conversations").json()["items"]
    page = api.get(f"/api/v1/conversations/{kept['id']}/messages").text
    assert "PARROT-1" in page
    assert "PARROT-2" not in page
    alone = mine.responses.create(model="test-model", input="Alone.")
    mine.responses.delete(alone.id)
    assert [item["id"] for item in api.get("/api/v1/conversations").json()["items"]] == [kept["id"]]


def test_nothing_is_stored_if_the_client_forbids_it(service: Service, model: ModelServer, guest: str) -> None:
    mine = client_of(service, guest)
    model.script(says("Hello."))
    answer = mine.responses.create(
        model="test-model",
        input="Hello",
        store=False,
        text={"format": {"type": "json_object"}},
        temperature=0.1,
    )
    assert (answer.output_text, answer.store, answer.temperature) == ("Hello.", False, 0.1)
    assert model.requests_of("chat")[-1].body["response_format"] == {"type": "json_object"}
    assert service.client_of(guest).get("/api/v1/conversations").json()["items"] == []
    with pytest.raises(openai.NotFoundError):
        mine.responses.retrieve(answer.id)


class Weather(BaseModel):
    city: str
    rains: bool


def test_an_output_format_reaches_the_model_and_is_refused_in_stored_conversations(
    client: openai.OpenAI, model: ModelServer
) -> None:
    told = says('{"city": "Oslo", "rains": true}')
    model.script(told, told, says("Noted."))
    parsed = client.responses.parse(model="test-model", input="The weather?", text_format=Weather)
    assert parsed.output_parsed == Weather(city="Oslo", rains=True)
    assert parsed.store is False
    sent = model.requests_of("chat")[-1].body["response_format"]
    assert (sent["type"], sent["json_schema"]["name"]) == ("json_schema", "Weather")
    question: Any = [{"role": "user", "content": "The weather?"}]
    completed = client.chat.completions.parse(model="test-model", messages=question, response_format=Weather)
    assert completed.choices[0].message.parsed == Weather(city="Oslo", rains=True)
    made = client.conversations.create().id
    with pytest.raises(openai.BadRequestError) as kept:
        client.responses.parse(model="test-model", input="And now?", text_format=Weather, conversation=made)
    assert kept.value.param == "text.format"
    with pytest.raises(openai.BadRequestError) as chat:
        client.chat.completions.create(
            model="test-model",
            messages=question,
            response_format={"type": "json_object"},
            extra_headers={"X-Conversation-Id": made},
        )
    assert chat.value.param == "response_format"
    plain = client.responses.create(
        model="test-model", input="Hello", conversation=made, text={"format": {"type": "text"}}
    )
    assert plain.output_text == "Noted."


def test_tool_calls_and_results_are_passed_through(client: openai.OpenAI, model: ModelServer) -> None:
    model.script(CALLS, CALLS, says("It rains in Oslo."))
    question: list[Any] = [{"role": "user", "content": "The weather in Oslo?"}]
    asked = client.responses.create(model="test-model", input=question, tools=[WEATHER])
    [call] = [item for item in asked.output if item.type == "function_call"]
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Oslo"})
    assert asked.store is False
    with client.responses.stream(model="test-model", input=question, tools=[WEATHER]) as stream:
        kinds = {event.type for event in stream}
    assert {"response.function_call_arguments.delta", "response.function_call_arguments.done"} <= kinds
    said = [item.model_dump(exclude_none=True) for item in asked.output]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "Rain."}
    told = client.responses.create(model="test-model", input=[*question, *said, result], tools=[WEATHER])
    assert told.output_text == "It rains in Oslo."
    roles = [message["role"] for message in model.requests_of("chat")[-1].body["messages"]]
    assert roles == ["user", "assistant", "tool"]


def test_images_reach_the_model_with_their_question(service: Service, model: ModelServer, guest: str) -> None:
    content = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": picture()}]
    client_of(service, guest).responses.create(
        model="test-model", input=[{"role": "user", "content": content}]
    )
    [question] = [each for each in model.requests_of("chat")[-1].body["messages"] if each["role"] == "user"]
    assert [part["type"] for part in question["content"]] == ["image_url", "text"]


def test_a_conversation_has_items_that_can_be_paged_added_and_deleted(
    service: Service, model: ModelServer, guest: str
) -> None:
    mine = client_of(service, guest)
    made = mine.conversations.create(
        items=[
            {"type": "message", "role": "user", "content": "My dog is Rex."},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Nice."}]},
        ],
        metadata={"topic": "dogs"},
    )
    assert mine.conversations.retrieve(made.id).metadata == {"topic": "dogs"}
    assert mine.conversations.update(made.id, metadata={"topic": "pets"}).metadata == {"topic": "pets"}
    model.script(says("Rex."))
    answer = mine.responses.create(model="test-model", input="Who is my dog?", conversation=made.id)
    assert answer.output_text == "Rex."
    assert "My dog is Rex." in sent_texts(model)
    pages = mine.conversations.items.list(made.id, order="asc", limit=2)
    texts = [item.content[0].text for item in pages]
    assert texts == ["My dog is Rex.", "Nice.", "Who is my dog?", "Rex."]
    [added] = mine.conversations.items.create(
        made.id, items=[{"type": "message", "role": "user", "content": "He is old."}]
    ).data
    assert (
        mine.conversations.items.retrieve(added.id, conversation_id=made.id).content[0].text == "He is old."
    )
    mine.conversations.items.delete(added.id, conversation_id=made.id)
    newest = mine.conversations.items.list(made.id, limit=1).data
    assert newest[0].content[0].text == "Rex."
    mine.responses.delete(answer.id)  # the client named the conversation: its items stay
    assert len(list(mine.conversations.items.list(made.id))) == 4
    assert mine.conversations.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError):
        mine.conversations.retrieve(made.id)


def test_charlie_cannot_access_responses_of_alice(service: Service, client: openai.OpenAI) -> None:
    other = client_of(service, CHARLIE)
    response = client.responses.create(model="test-model", input="Secret.")
    name = response.conversation.id
    tries: list[Any] = [
        lambda: other.responses.retrieve(response.id),
        lambda: other.responses.delete(response.id),
        lambda: other.responses.input_items.list(response.id),
        lambda: other.responses.create(model="test-model", input="Tell", previous_response_id=response.id),
        lambda: other.responses.create(model="test-model", input="Tell", conversation=name),
        lambda: other.conversations.retrieve(name),
        lambda: other.conversations.items.list(name),
        lambda: other.conversations.update(name, metadata={}),
        lambda: other.conversations.delete(name),
    ]
    for attempt in tries:
        with pytest.raises(openai.NotFoundError):
            attempt()


def test_failed_and_invalid_requests_are_reported(
    service: Service, model: ModelServer, client: openai.OpenAI
) -> None:
    model.script(ERRORS["wrong_key"](), says("One two three four.", fault="cut", fault_after=2))
    with pytest.raises(openai.InternalServerError):
        client.responses.create(model="test-model", input="Hello")
    events = list(client.responses.create(model="test-model", input="Hello", stream=True))
    assert events[-1].type == "response.failed"
    assert client.responses.retrieve(events[-1].response.id).status == "failed"
    with pytest.raises(openai.BadRequestError) as unknown:
        client.responses.create(model="test-model", input="Hello", extra_body={"inputs": 1})
    assert unknown.value.param == "inputs"
    with pytest.raises(openai.BadRequestError) as empty:
        client.responses.create(model="test-model", input="")
    assert empty.value.param == "input"
    search: Any = [{"type": "web_search_call", "id": "ws_1", "status": "completed"}]
    with pytest.raises(openai.BadRequestError, match="should be one of message, function_call") as odd:
        client.responses.create(model="test-model", input=search)
    assert odd.value.param == "input.0"
    with pytest.raises(openai.BadRequestError, match="the type 'web_search' is not supported") as own:
        client.responses.create(model="test-model", input="Hello", tools=[{"type": "web_search"}])
    assert own.value.param == "tools.0"
    with pytest.raises(openai.BadRequestError) as streamed:
        client.responses.retrieve(events[-1].response.id, stream=True)
    assert streamed.value.param == "stream"
    client.responses.retrieve(events[-1].response.id, include=["message.output_text.logprobs"])
    with pytest.raises(openai.BadRequestError):
        client.responses.create(
            model="test-model", input="Hello", tools=[WEATHER], conversation=client.conversations.create().id
        )


def test_a_resent_request_returns_the_same_response(service: Service, model: ModelServer, guest: str) -> None:
    headers = {"Idempotency-Key": "once-only"}
    made = [
        client_of(service, guest).responses.create(model="test-model", input="Hello", extra_headers=headers)
        for _ in range(2)
    ]
    assert made[0].id == made[1].id
    assert made[0].output_text == made[1].output_text


@pytest.mark.parametrize("is_continued", [False, True])
def test_a_repeated_request_stores_its_instructions_once(
    service: Service, model: ModelServer, guest: str, is_continued: bool
) -> None:
    mine = client_of(service, guest)
    first = mine.responses.create(model="test-model", input="My key is BLUE-42.")
    mine.responses.create(model="test-model", input="And now?", previous_response_id=first.id)
    asked: dict[str, Any] = {"previous_response_id": first.id} if is_continued else {}
    headers = {"Idempotency-Key": "with-instructions"}
    made = [
        mine.responses.create(
            model="test-model", input="Hello", instructions="Be short.", extra_headers=headers, **asked
        )
        for _ in range(2)
    ]
    assert made[0].id == made[1].id
    assert made[0].conversation
    conversation_id = made[0].conversation.id.removeprefix("conv_")
    kept = service.client_of(guest).get(f"/api/v1/conversations/{conversation_id}/messages").json()
    roles = [item["role"] for item in kept["items"]]
    assert roles == [*(["user", "assistant"] * is_continued), "system", "user", "assistant"]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("length", "max_output_tokens"),
        ("content_filter", "content_filter"),
        ("a reason of its own", "max_output_tokens"),
    ],
)
def test_a_truncated_or_filtered_answer_is_incomplete(
    service: Service, model: ModelServer, guest: str, reason: str, told: str
) -> None:
    model.script(Behaviour(text="Half of", finish_reason=reason))
    mine = client_of(service, guest)
    made = mine.responses.create(model="test-model", input="Hello")
    for response in (made, mine.responses.retrieve(made.id)):
        assert response.status == "incomplete"
        assert response.incomplete_details
        assert response.incomplete_details.reason == told


def at_once(call: Callable[[], Any], times: int = 4) -> list[Any]:
    with ThreadPoolExecutor(times) as threads:
        return [each.result() for each in [threads.submit(call) for _ in range(times)]]


def test_concurrent_requests_with_one_key_create_one_resource(
    service: Service, model: ModelServer, guest: str
) -> None:
    client, headers = client_of(service, guest), {"Idempotency-Key": "at-once"}
    asked = at_once(lambda: client.responses.create(model="test-model", input="Hello", extra_headers=headers))
    assert len({each.id for each in asked}) == 1
    said: Any = [{"role": "user", "content": "I have a dog."}, {"role": "assistant", "content": "Lovely."}]
    begun = at_once(
        lambda: client.conversations.create(items=said, metadata={"topic": "dogs"}, extra_headers=headers)
    )
    assert len({each.id for each in begun}) == 1
    assert {each.metadata["topic"] for each in begun} == {"dogs"}
    name = begun[0].id
    added = at_once(lambda: client.conversations.items.create(name, items=said, extra_headers=headers))
    assert len({tuple(item.id for item in page.data) for page in added}) == 1
    assert len(list(client.conversations.items.list(name))) == 2 * len(said)
    assert len(service.client_of(guest).get("/api/v1/conversations").json()["items"]) == 2
    with pytest.raises(openai.BadRequestError):
        client.conversations.create(metadata={"topic": "cats"}, extra_headers=headers)
    client.conversations.items.delete(added[0].data[1].id, conversation_id=name)
    again = client.conversations.items.create(name, items=said, extra_headers=headers)
    assert [item.id for item in again.data] == [added[0].data[0].id]


def test_every_post_operation_is_idempotent_or_creates_nothing() -> None:
    made = {
        path: hasattr(operation.view_func, "creation")
        for router in ROUTERS
        for path, view in router.path_operations.items()
        for operation in view.operations
        if "POST" in operation.methods
    }
    of_messages = {"/chat/completions", "/responses"}  # the message stores the key
    makes_nothing = {"/embeddings", "/conversations/{conversation_id}"}
    assert {path for path, is_declared in made.items() if not is_declared} == of_messages | makes_nothing


def test_the_async_client_can_stream_responses(service: Service, model: ModelServer) -> None:
    model.script(says("One two three."))

    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key=service.tokens[ALICE]) as client:
            stream = await client.responses.create(model="test-model", input="Count", stream=True)
            return "".join(
                [event.delta async for event in stream if event.type == "response.output_text.delta"]
            )

    assert run_apart(ask()) == "One two three."
