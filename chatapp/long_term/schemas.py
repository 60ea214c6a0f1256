"""Request and response schemas of the memory API. Texts are normalised; ids stay strings for the selectors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from chatapp.conversations.schemas.messages import MessageText, normalize_message_text
from chatapp.long_term import models
from chatapp.long_term.selectors.entries import sources_of
from chatapp.operations.clock import iso_time
from chatapp.operations.database.ids import id_or_none
from chatapp.operations.http.schemas import Body, Moment, Shape
from memory.bounds import Day, Number

EntryText = Annotated[
    str,
    Field(max_length=100_000),
    AfterValidator(normalize_message_text),
    AfterValidator(str.strip),
    # Last, because a text of spaces is empty only after stripping.
    Field(min_length=1),
]


class NewEntry(Body):
    text: EntryText
    day: Day | None = Field(None, description="Today, in your time zone, by default.")


class EntryChange(Body):
    text: EntryText
    revision: Number | None = Field(
        None, description="The revision you changed; 409 if it is not the current one."
    )


class RevisionIn(Body):
    revision: Number


class MarkdownIn(Body):
    markdown: MessageText


class ProfileIn(Body):
    markdown: Annotated[
        str, Field(max_length=20_000), AfterValidator(normalize_message_text), AfterValidator(str.strip)
    ]


class EntrySource(Shape):
    conversation_id: str
    first_message_id: str
    last_message_id: str
    created_at: Moment


class MemoryEntry(Shape):
    id: str
    day: str
    text: str
    author: Literal["extraction", "user", "operator"] = Field(description="Who wrote the current text.")
    shared_memory_of: str | None = Field(description="The agent whose shared memory contains it, too.")
    state: Literal["kept", "proposed"]
    revision: int
    conversation_id: str | None
    first_message_id: str | None
    last_message_id: str | None
    sources: list[EntrySource] = Field(description="Later passages that said the same.")
    created_at: Moment
    updated_at: Moment


class EntryRevision(Shape):
    revision: int
    text: str
    author: Literal["extraction", "user", "operator"]
    written_at: Moment
    is_current: bool


class MemoryDay(Shape):
    day: str
    entry_count: int


class MemoryStats(Shape):
    day: str
    entry_count: int
    entry_tokens: int = Field(description="Estimated tokens of the day's entries in a context.")
    input_tokens: int = Field(description="Tokens that models read for you on that day.")
    output_tokens: int


class MemoryDayText(Shape):
    day: str
    markdown: str
    version: str = Field(
        description="The ETag begins with it: send either as `If-Match` with the changed Markdown."
    )
    entries: list[MemoryEntry]


class MemorySettings(Shape):
    paused: bool = Field(description="Nothing is learned or recalled across conversations.")
    review: bool = Field(description="Extracted entries wait for approval.")
    profile: bool = Field(description="Conversations get the profile in their context.")


class Consolidation(Shape):
    """The latest pass that adds new entries to the profile."""

    status: Literal["pending", "running", "done", "failed", "skipped"]
    reason: str | None = Field(description="Why it failed or was skipped.")
    entry_count: int
    version: int | None = Field(description="The version it created; null if nothing was new.")
    created_at: Moment
    finished_at: Moment | None


class Profile(Shape):
    markdown: str
    version: int = Field(
        description="The ETag begins with it: send either as `If-Match`; 0 before anything was written."
    )
    author: Literal["user", "consolidation", "forgetting"] | None
    updated_at: Moment | None
    tokens: int
    budget_tokens: int = Field(description="A longer profile is truncated at a line end when it is sent.")
    is_used: bool = Field(description="Whether conversations get it in their context.")
    consolidation: Consolidation | None


class ProfileVersion(Shape):
    version: int
    author: Literal["user", "consolidation", "forgetting"]
    created_at: Moment
    tokens: int


class LineChange(Shape):
    kind: Literal["same", "added", "removed"]
    text: str


class ProfileVersionText(ProfileVersion):
    markdown: str
    against: int = Field(description="The version `changes` starts from; 0 is the empty one.")
    changes: list[LineChange]


def entry_shape(row: models.MemoryEntry) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "day": row.day.isoformat(),
        "text": row.text,
        "author": row.author,
        "shared_memory_of": row.scope.name if row.scope else None,
        "state": row.state,
        "revision": row.revision,
        "conversation_id": id_or_none(row.conversation_id),
        "first_message_id": id_or_none(row.first_message_id),
        "last_message_id": id_or_none(row.last_message_id),
        "sources": [_source_shape(source) for source in sources_of(row)],
        "created_at": iso_time(row.created_at),
        "updated_at": iso_time(row.updated_at),
    }


def revision_shape(row: models.EntryRevision) -> dict[str, Any]:
    return {
        "revision": row.number,
        "text": row.text,
        "author": row.author,
        "written_at": iso_time(row.written_at),
    }


def _source_shape(row: models.EntrySource) -> dict[str, Any]:
    return {
        "conversation_id": str(row.conversation_id),
        "first_message_id": str(row.first_message_id),
        "last_message_id": str(row.last_message_id),
        "created_at": iso_time(row.created_at),
    }
