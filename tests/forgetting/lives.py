"""Builds a user with a secret in messages, a summary, memory, runs, offloads and a recall in another conversation."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from PIL import Image

from agents.events import MessageCompleted, MessageCreated, Recall, RecalledItem
from agents.requests.manifest import Manifest, OwnText, dump_manifest
from agents.types import WireStyle
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.context.models import RequestText, SentRequest
from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.files import attachments
from chatapp.files.models import Attachment
from chatapp.files.offloads import ConversationOffloads
from chatapp.long_term import files as memory_files
from chatapp.long_term.actions.entries import record_entry, rewrite_entry
from chatapp.long_term.models import MemoryEntry, Profile, ProfileVersion
from chatapp.realtime import event_log
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.actions.sources import note_read
from chatapp.runs.models import Run, ToolCall
from memory.types import ToolResultPart
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

SECRET = "celadon"
SAID = f"My favourite colour is {SECRET}."
KEPT = "The plum tree of the garden blooms in March 2027."


@dataclass
class Life:
    user: User
    conversation: Conversation
    elsewhere: Conversation
    messages: list[Message]
    entry: MemoryEntry
    image: Attachment

    @property
    def told(self) -> Message:
        return self.messages[0]

    @property
    def answer(self) -> Message:
        return self.messages[1]


def live(user: User, shade: int = 1) -> Life:
    conversation = new_conversation(user, SAID, at=NOW)
    messages = say(conversation, SAID, "Noted.", KEPT, "How lovely.", "And now?", "Now we wait.")
    log(conversation, *messages)
    image = attachments.store_image(user=user, name="a.png", content=picture(shade))
    image.messages.add(messages[0])
    compaction = finished_compaction(conversation, summary=f"The user likes {SECRET}. {KEPT}")
    Compaction.objects.filter(pk=compaction.pk).update(
        last_position=3, message_count=4, reminder=f"Done so far:\n- {SAID} → Noted."
    )
    entry = record_entry(
        compaction=compaction,
        text=f"The user's favourite colour is {SECRET}.\n\n- {KEPT}",
        first_message_id=messages[0].pk,
        last_message_id=messages[3].pk,
        at=NOW,
    )
    assert entry is not None
    rewrite_entry(entry, f"They love the colour {SECRET}.\n\n- {KEPT}", MemoryEntry.Author.USER)
    sources = [[str(entry.pk)], []]
    text = f"- Likes {SECRET}\n- Has a plum tree"
    profile = Profile.objects.create(user=user, text=text, sources=sources, version=1)
    ProfileVersion.objects.create(
        profile=profile, number=1, text=text, sources=sources, author="consolidation", created_at=NOW
    )
    memory_files.write_day(user.pk, NOW.date())
    memory_files.write_profile(user.pk)
    offload(conversation)
    index_conversation(conversation.pk)
    elsewhere = recalled_elsewhere(user, messages[0])
    return Life(user, conversation, elsewhere, messages, entry, image)


def offload(conversation: Conversation) -> None:
    """Store a failed run with the text in its plan and error, a tool call that returned it and a request text."""
    question, answer = conversation.messages.order_by("position")[:2]
    whole = ToolResultPart(call_id="1", name="search", text=f"Line 1\n{SAID}\nLine 3")
    reference = ConversationOffloads().offload_tool_result(str(conversation.pk), whole)
    result = {"type": "tool_result", "call_id": "1", "name": "memory_search", "text": SAID}
    run = Run.objects.create(
        conversation=conversation,
        user=conversation.user,
        question=question,
        answer=answer,
        status="failed",
        plan=[{"id": "a", "task": f"Find out more of the colour {SECRET}.", "state": "done", "result": SAID}],
        error_message="The provider refused.",
        error_detail=f"400: {SAID}",
        created_at=NOW,
    )
    ToolCall.objects.create(
        run=run,
        step=1,
        ordinal=1,
        call_id="1",
        name="memory_search",
        arguments=f'{{"query": "colour {SECRET}"}}',
        state="done",
        is_idempotent=True,
        result=[{**result, "offload_ref": reference}],
        requested_at=NOW,
    )
    RequestText.objects.create(
        conversation=conversation,
        sha256="0" * 64,
        source="recall",
        content=json.dumps({"parts": [{"type": "text", "text": f"Said earlier.\n{SAID}"}]}),
    )


def picture(shade: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (4, 4), shade).save(buffer, "PNG")
    return buffer.getvalue()


def log(conversation: Conversation, *messages: Message) -> None:
    for message in messages:
        kind = MessageCreated if message.role == "user" else MessageCompleted
        fact = kind(
            conversation_id=str(conversation.pk),
            at=message.created_at,
            message=message_shape(message),
        )
        event_log.append(conversation, fact)


def recalled_elsewhere(user: User, source: Message) -> Conversation:
    """Return a conversation of the next day, with a run that recalled the message."""
    other = new_conversation(user, "Another day", at=NOW + timedelta(days=1))
    question, answer = say(other, "What do I know of it?", "I look it up.", at=NOW + timedelta(days=1))
    run = Run.objects.create(
        conversation=other,
        user=user,
        question=question,
        answer=answer,
        status="complete",
        created_at=NOW + timedelta(days=1),
    )
    note_read(run.pk, [source.pk])
    tell_recalled(run, source)
    return other


def tell_recalled(run: Run, source: Message) -> None:
    item = RecalledItem(
        source={
            "kind": "message",
            "message_id": str(source.pk),
            "conversation_id": str(source.conversation_id),
        },
        tokens=9,
        preview=message_values.text_of(source.parts),
    )
    home = Conversation.objects.get(pk=run.conversation_id)
    fact = Recall(conversation_id=str(home.pk), run_id=str(run.pk), at=NOW + timedelta(days=1), items=[item])
    event_log.append(home, fact, run=run)


def look_up(conversation: Conversation, text: str, call_id: str = "looked up") -> None:
    """Store a memory tool call in the conversation's first run that returned the text, which is offloaded, too."""
    part = ToolResultPart(call_id=call_id, name="memory_search", text=text)
    reference = ConversationOffloads().offload_tool_result(str(conversation.pk), part)
    result = {"type": "tool_result", "call_id": call_id, "name": "memory_search", "text": text}
    ToolCall.objects.create(
        run=conversation.runs.earliest("created_at"),
        step=1,
        ordinal=9,
        call_id=call_id,
        name="memory_search",
        arguments="{}",
        state="done",
        is_idempotent=True,
        result=[{**result, "offload_ref": reference}],
        requested_at=NOW,
    )


def read_elsewhere(user: User, source_ids: Collection[UUID]) -> Run:
    """Return a run of another conversation that has read these sources but does not mention them."""
    chat = new_conversation(user, "Another day", at=NOW + timedelta(days=1))
    question, answer = say(chat, "What do you know?", "I look it up.", at=NOW + timedelta(days=1))
    run = Run.objects.create(
        conversation=chat, user=user, question=question, answer=answer, status="complete", created_at=NOW
    )
    note_read(run.pk, source_ids)
    return run


def send_request(run: Run, *texts: str) -> None:
    """Store a sent request of the run with these texts, which are stored nowhere else."""
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    for sha256, text in zip(hashes, texts, strict=True):
        content = json.dumps([json.dumps({"parts": [{"type": "text", "text": text}]})])
        RequestText.objects.create(
            conversation_id=run.conversation_id, sha256=sha256, source="recall", content=content
        )
    pieces = tuple(OwnText("recall", sha256) for sha256 in hashes)
    manifest = Manifest(sha256="0" * 64, head={}, style=WireStyle(), pieces=pieces)
    SentRequest.objects.create(
        run=run,
        n=1,
        purpose="chat",
        sha256="0" * 64,
        tokens=1,
        manifest=dump_manifest(manifest),
        created_at=NOW,
    )
