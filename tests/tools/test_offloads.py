"""Offloads, on disk and in S3: stored whole, readable only by their owner, deleted with their conversation."""

from __future__ import annotations

import io
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from PIL import Image

from agents.tools.protocol import ResultLimit, ToolCaller, ToolFailure
from agents.tools.tool_results import fits
from chatapp.context.tools.registry import BUILT_IN
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
from chatapp.files import offloads
from chatapp.files.models import Offload
from chatapp.files.offloads import ConversationOffloads, object_store, sweep_offloads
from chatapp.forgetting.models import Removal
from chatapp.forgetting.services import forget_message, forget_whole_conversation
from chatapp.long_term import files as memory_files
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from chatapp.operations.errors import InvalidInput, NotFound
from chatapp.operations.monitoring.doctor import check_bucket
from memory.tokens import text_message
from memory.types import ToolResultPart
from tests.memory_store.rows import finished_compaction, new_conversation, say
from tests.servers.s3 import S3Server

pytestmark = pytest.mark.django_db(transaction=True)
LATER = timedelta(hours=2)
LONG = "".join(f"line {number}: value {number * 37}\n" for number in range(5_000))


@pytest.fixture(scope="module")
def s3():
    server = S3Server()
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(params=["disk", "s3"])
def stored(request, settings, tmp_path):
    """Return a function that lists the stored paths."""
    if request.param == "disk":
        settings.DATA_DIR = tmp_path
        root = tmp_path / "offloads"
        return lambda: sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
    server = request.getfixturevalue("s3")
    bucket = server.new_bucket(f"bucket-{abs(hash(tmp_path))}")
    settings.S3_BUCKET, settings.S3_ENDPOINT_URL = bucket, server.url
    settings.S3_ACCESS_KEY_ID, settings.S3_SECRET_ACCESS_KEY = "test", "test"
    return lambda: [key.removeprefix("offloads/") for key in server.keys(bucket)]


@pytest.fixture
def conversation(alice):
    return create_conversation(user=alice, now=clock.now())


def offload(conversation, text=LONG, name="http_fetch"):
    result = ToolResultPart(call_id="../../etc/passwd", name=name, text=text)
    return ConversationOffloads().offload_tool_result(str(conversation.pk), result)


def caller_of(conversation):
    return ToolCaller(str(conversation.user_id), str(conversation.pk), "")


def picture():
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.sqlite
def test_a_result_is_read_back_whole_and_by_page(stored, conversation):
    reference = offload(conversation)
    store = ConversationOffloads()
    assert store.read(str(conversation.pk), reference, limit=10**6) == LONG
    assert store.read(str(conversation.pk), reference, offset=100, limit=50) == LONG[100:150]


def test_the_file_is_named_by_our_own_id_and_not_by_the_models_call_id(stored, conversation):
    reference = offload(conversation)
    assert stored() == [f"{conversation.pk}/tool_result-{reference}.txt"]


def test_a_result_stored_again_keeps_its_reference_and_its_single_file(stored, conversation):
    """Each run without room for an old result stores it again."""
    first, again = offload(conversation), offload(conversation)
    assert first == again
    assert stored() == [f"{conversation.pk}/tool_result-{first}.txt"]
    assert offload(conversation, "another text") != first
    result = ToolResultPart(call_id="another", name="http_fetch", text=LONG)
    assert ConversationOffloads().offload_tool_result(str(conversation.pk), result) != first
    assert Offload.objects.count() == 3


def test_a_lone_surrogate_is_replaced_before_storing(stored, conversation):
    reference = offload(conversation, "a\ud800b\x00c")
    assert ConversationOffloads().read(str(conversation.pk), reference) == "a?b\x00c"


def test_an_image_is_encoded_again_and_stored_once_by_its_hash(stored, conversation):
    store = ConversationOffloads()
    first = store.offload_image(str(conversation.pk), picture())
    again = store.offload_image(str(conversation.pk), picture())
    row = Offload.objects.get()
    assert first == again == str(row.pk)
    [path] = stored()
    assert path == f"{conversation.pk}/{row.name}"
    assert row.name.startswith("data/")
    assert row.mime_type == "image/png"


@pytest.mark.sqlite
def test_content_that_is_no_readable_image_is_refused(stored, conversation):
    with pytest.raises(InvalidInput):
        ConversationOffloads().offload_image(str(conversation.pk), b"<svg onload=alert(1)>")
    assert stored() == []


def test_concurrent_appends_to_the_context_lose_nothing(stored, conversation):
    def append(number):
        message = text_message("user", f"message {number} " + "x" * 3_000)
        try:
            return ConversationOffloads().offload_context(str(conversation.pk), [message])
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        [reference] = set(threads.map(append, range(12)))
    lines = ConversationOffloads().read(str(conversation.pk), reference, limit=10**6).splitlines()
    said = {json.loads(line)["parts"][0]["text"].split()[1] for line in lines}
    assert said == {str(number) for number in range(12)}


def test_deleting_the_conversation_deletes_its_files(stored, conversation):
    offload(conversation)
    ConversationOffloads().offload_image(str(conversation.pk), picture())
    ConversationOffloads().offload_context(str(conversation.pk), [text_message("user", "hello")])
    kept = create_conversation(user=conversation.user, now=clock.now())
    offload(kept)
    forget_whole_conversation(conversation.user, conversation.pk, now=clock.now())
    assert [path.split("/")[0] for path in stored()] == [str(kept.pk)]


def test_forgetting_a_message_deletes_offloads_that_may_repeat_it(stored, alice):
    """The result of a memory tool may repeat the message. The result in the other conversation stays."""
    said = import_conversation(
        user=alice, messages=[ImportedMessage("user", "My code is 4711.")], now=clock.now()
    )
    other = create_conversation(user=alice, now=clock.now())
    offload(said, name="memory_search"), offload(other)
    message = said.messages.get()
    forget_message(alice, message.pk, now=clock.now())
    assert [path.split("/")[0] for path in stored()] == [str(other.pk)]
    assert [row.conversation_id for row in Offload.objects.all()] == [other.pk]


def test_a_continuing_run_cannot_store_offloads_of_a_deleted_conversation(stored, conversation):
    gone = str(conversation.pk)
    forget_whole_conversation(conversation.user, gone, now=clock.now())
    with pytest.raises(NotFound):
        ConversationOffloads().offload_tool_result(gone, ToolResultPart("1", "clock", "late"))
    assert stored() == []


def test_the_sweep_deletes_only_files_without_a_row(stored, conversation, monkeypatch):
    reference = offload(conversation)
    ConversationOffloads().offload_context(str(conversation.pk), [text_message("user", "hello")])
    kept = stored()
    object_store().write(f"{conversation.pk}/tool_result-lost.txt", b"its row was never written")
    object_store().write("0199aaaa-0000-7000-8000-000000000000/data/x.png", b"its conversation is gone")
    with monkeypatch.context() as patched:
        patched.setattr(offloads, "database_made_at", lambda: clock.now() + timedelta(minutes=1))
        assert sweep_offloads(now=clock.now() + LATER) == 0, "they are of another database"
    assert sweep_offloads(now=clock.now()) == 0, "whoever wrote it may be about to write its row"
    assert sweep_offloads(now=clock.now() + LATER) == 2
    assert stored() == kept
    assert ConversationOffloads().read(str(conversation.pk), reference, limit=4) == "line"


@pytest.fixture
def in_bucket(s3, settings, tmp_path):
    """Return a function that lists the objects in the bucket."""
    bucket = s3.new_bucket(f"away-{abs(hash(tmp_path))}")
    settings.S3_BUCKET, settings.S3_ENDPOINT_URL = bucket, s3.url
    settings.S3_ACCESS_KEY_ID, settings.S3_SECRET_ACCESS_KEY = "test", "test"
    return lambda: s3.keys(bucket)


@contextmanager
def bucket_away(settings):
    there = settings.S3_ENDPOINT_URL
    with socket.socket() as held:  # bound, but not listening
        held.bind(("127.0.0.1", 0))
        settings.S3_ENDPOINT_URL = f"http://127.0.0.1:{held.getsockname()[1]}"
        yield
    settings.S3_ENDPOINT_URL = there


def test_a_conversation_is_deleted_during_a_bucket_outage_and_its_files_by_the_sweep(
    in_bucket, conversation, api_client, settings
):
    offload(conversation)
    client = api_client(conversation.user)
    with bucket_away(settings):
        gone = client.delete(f"/api/v1/conversations/{conversation.pk}")
    assert gone.status_code == 204, gone.content
    assert not Offload.objects.exists()
    assert not Removal.objects.exists()
    assert in_bucket()
    sweep_offloads(now=clock.now() + LATER)
    assert in_bucket() == []


@pytest.mark.sqlite
def test_text_forgotten_during_a_bucket_outage_is_removed_from_the_daily_file(in_bucket, alice, settings):
    said = new_conversation(alice)
    [message] = say(said, "My code is 4711.")
    offload(said, name="memory_search")
    compaction = finished_compaction(said)
    span = {"first_message_id": message.pk, "last_message_id": message.pk}
    entry = record_entry(compaction=compaction, text="The code is 4711.", **span, at=clock.now())
    memory_files.write_day(alice.pk, entry.day)
    file = memory_files.day_path(alice.pk, entry.day)
    assert "4711" in file.read_text()
    with bucket_away(settings):
        forget_message(alice, message.pk, now=clock.now())
    assert not MemoryEntry.objects.exists()
    assert not file.exists() or "4711" not in file.read_text()
    assert in_bucket()
    sweep_offloads(now=clock.now() + LATER)
    assert in_bucket() == []


@pytest.mark.sqlite
def test_reading_an_offload_during_a_bucket_outage_returns_503(in_bucket, conversation, api_client, settings):
    reference = offload(conversation)
    client = api_client(conversation.user)
    address = f"/api/v1/conversations/{conversation.pk}/offloads/{reference}"
    with bucket_away(settings):
        for path in (address, f"{address}/content"):
            answer = client.get(path)
            assert answer.status_code == 503, answer.content
            assert answer.json()["error"]["code"] == "unavailable"
    assert client.get(address).status_code == 200


def test_single_results_can_be_discarded(stored, conversation):
    gone, kept = offload(conversation), offload(conversation, "another text")
    ConversationOffloads().discard(str(conversation.pk), [gone])
    assert stored() == [f"{conversation.pk}/tool_result-{kept}.txt"]
    with pytest.raises(NotFound):
        ConversationOffloads().read(str(conversation.pk), gone)


# --- tools that read offloads -------------------------------------------------------------------------


@pytest.fixture
def on_disk(settings, tmp_path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path / "offloads"


@pytest.mark.sqlite
async def test_pages_state_their_position_and_how_to_read_on(on_disk, conversation):
    reference = await in_thread(offload, conversation)
    page = BUILT_IN["offloaded_page"]
    first = (await page.call({"reference": reference, "limit": 1000}, caller_of(conversation))).text
    assert first.startswith(f"Characters 0 to 1,000 of {len(LONG):,}. Go on with offset 1000.")
    last = (await page.call({"reference": reference, "offset": len(LONG) - 5}, caller_of(conversation))).text
    assert "This is the end." in last
    with pytest.raises(ToolFailure, match="nothing from"):
        await page.call({"reference": reference, "offset": 10**9}, caller_of(conversation))


@pytest.mark.sqlite
@pytest.mark.parametrize("limit", [ResultLimit(300, 40_000), ResultLimit(30_000, 700), ResultLimit(80, 200)])
@pytest.mark.parametrize(
    "text", [LONG[:6_000], "4711,0815;" * 600, "記憶を失わない。" * 700], ids=["lines", "digits", "cjk"]
)
async def test_pages_fit_the_result_limit_and_together_give_the_whole_text(
    on_disk, conversation, limit, text
):
    reference = await in_thread(offload, conversation, text)
    caller = replace(caller_of(conversation), limit=limit)
    read, offset = "", 0
    while offset < len(text):
        page = (
            await BUILT_IN["offloaded_page"].call({"reference": reference, "offset": offset}, caller)
        ).text
        assert fits(page, limit)
        head, _, body = page.partition("\n\n")
        read += body
        offset += len(body)
        assert head.endswith(f"offset {offset}." if offset < len(text) else "This is the end.")
    assert read == text


@pytest.mark.sqlite
@pytest.mark.parametrize("limit", [ResultLimit(500, 40_000), ResultLimit(30_000, 2_000)])
async def test_matches_are_shown_up_to_the_result_limit(on_disk, conversation, limit):
    reference = await in_thread(offload, conversation)
    wanted = {"reference": reference, "pattern": r"line \d+00: "}
    found = await BUILT_IN["offloaded_grep"].call(wanted, replace(caller_of(conversation), limit=limit))
    assert fits(found.text, limit)
    shown = found.text.count("--- at offset")
    assert found.text.startswith(f"{shown} matches; there are more, narrow the pattern.")
    assert shown > 1


@pytest.mark.sqlite
async def test_a_match_is_shown_with_its_offset(on_disk, conversation):
    reference = await in_thread(offload, conversation)
    found = await BUILT_IN["offloaded_grep"].call(
        {"reference": reference, "pattern": r"line 4321: VALUE \d+"}, caller_of(conversation)
    )
    assert f"line 4321: value {4321 * 37}" in found.text
    offset = int(found.text.split("at offset ")[1].split("\n")[0].replace(",", ""))
    assert LONG[offset:].startswith("line 4321")


@pytest.mark.sqlite
async def test_a_pattern_that_would_never_end_times_out(on_disk, conversation):
    reference = await in_thread(offload, conversation, "a" * 40_000 + "!")
    with pytest.raises(ToolFailure, match="takes too long"):
        await BUILT_IN["offloaded_grep"].call(
            {"reference": reference, "pattern": "(a+)+$"}, caller_of(conversation)
        )


@pytest.mark.sqlite
async def test_an_invalid_pattern_is_reported(on_disk, conversation):
    reference = await in_thread(offload, conversation)
    with pytest.raises(ToolFailure, match="not a valid regular expression"):
        await BUILT_IN["offloaded_grep"].call(
            {"reference": reference, "pattern": "(["}, caller_of(conversation)
        )


@pytest.mark.sqlite
async def test_an_image_can_be_viewed_and_cannot_be_read_as_text(on_disk, conversation):
    reference = await in_thread(ConversationOffloads().offload_image, str(conversation.pk), picture())
    output = await BUILT_IN["offloaded_view_image"].call({"reference": reference}, caller_of(conversation))
    assert output.images[0].mime_type == "image/png"
    with pytest.raises(ToolFailure, match="image"):
        await BUILT_IN["offloaded_page"].call({"reference": reference}, caller_of(conversation))


@pytest.mark.parametrize("tool", ["offloaded_page", "offloaded_view_image"])
async def test_references_of_other_conversations_are_refused(on_disk, conversation, bob, tool):
    reference = await in_thread(offload, conversation)
    bobs = await in_thread(lambda: create_conversation(user=bob, now=clock.now()))
    for wrong in (reference, "../../secret_key", str(conversation.pk), "", "0"):
        with pytest.raises(ToolFailure):
            await BUILT_IN[tool].call({"reference": wrong}, caller_of(bobs))


# --- the API for users -------------------------------------------------------------------------------


def test_the_owner_can_read_pages_and_the_whole_text(on_disk, conversation, alice, api_client):
    reference = offload(conversation)
    address = f"/api/v1/conversations/{conversation.pk}/offloads/{reference}"
    page = api_client(alice).get(address, {"offset": 10, "limit": 20}).json()
    assert page["text"] == LONG[10:30]
    assert page["next_offset"] == 30
    assert page["total_chars"] == len(LONG)
    assert page["tool"] == "http_fetch"
    whole = api_client(alice).get(page["content_url"])
    assert whole.content.decode() == LONG
    assert whole["Content-Disposition"].startswith("attachment")
    assert whole["X-Content-Type-Options"] == "nosniff"
    last = api_client(alice).get(address, {"offset": len(LONG) - 5}).json()
    assert last["next_offset"] is None


def test_the_owner_can_view_an_image(on_disk, conversation, alice, api_client):
    reference = ConversationOffloads().offload_image(str(conversation.pk), picture())
    page = api_client(alice).get(f"/api/v1/conversations/{conversation.pk}/offloads/{reference}").json()
    assert (page["kind"], page["total_chars"], page["text"]) == ("image", None, "")
    shown = api_client(alice).get(page["content_url"])
    assert shown["Content-Type"] == "image/png"


@pytest.mark.parametrize("tail", ["", "/content"])
def test_other_users_cannot_read_an_offload_at_any_address(on_disk, conversation, bob, api_client, tail):
    reference = offload(conversation)
    own = create_conversation(user=bob, now=clock.now())
    for conversation_id in (conversation.pk, own.pk):
        address = f"/api/v1/conversations/{conversation_id}/offloads/{reference}{tail}"
        assert api_client(bob).get(address).status_code == 404


async def in_thread(call, *arguments):
    return await in_database(call)(*arguments)


def test_the_doctor_accepts_a_working_bucket_and_leaves_it_empty(s3, settings, tmp_path):
    settings.S3_BUCKET, settings.S3_ENDPOINT_URL = s3.new_bucket(f"doctor-{abs(hash(tmp_path))}"), s3.url
    settings.S3_ACCESS_KEY_ID, settings.S3_SECRET_ACCESS_KEY = "test", "test"
    [found] = check_bucket()
    assert found.is_well, found.what
    assert s3.keys(settings.S3_BUCKET) == []


def test_the_doctor_names_a_missing_bucket(s3, settings):
    settings.S3_BUCKET, settings.S3_ENDPOINT_URL = "nowhere", s3.url
    settings.S3_ACCESS_KEY_ID, settings.S3_SECRET_ACCESS_KEY = "test", "test"
    [found] = check_bucket()
    assert (found.part, found.is_well) == ("bucket nowhere", False)
    assert "S3_BUCKET" in found.remedy


@pytest.mark.mechanism("agentscope.offload-context")
async def test_the_agent_can_list_all_offloads(on_disk, conversation):
    first = await in_database(offload)(conversation)
    second = await in_database(offload)(conversation, "short")
    said = [text_message("user", "hello")]
    await in_database(ConversationOffloads().offload_context)(str(conversation.pk), said)
    listed = await BUILT_IN["offloaded_page"].call({"reference": "list"}, caller_of(conversation))
    lines = listed.text.split("\n\n", 1)[1].splitlines()
    assert [line.split("  ")[0] for line in lines] == [first, second, "context"]
    assert f"http_fetch  {len(LONG):,} bytes" in lines[0]
    found = await BUILT_IN["offloaded_grep"].call(
        {"reference": "list", "pattern": second}, caller_of(conversation)
    )
    assert found.text.startswith("1 matches")
