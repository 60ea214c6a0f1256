"""Folders in the API: schemas, and the response built from a row."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from chatapp.conversations.models import Folder as FolderRow
from chatapp.operations.clock import iso_time
from chatapp.operations.http.schemas import Body, Changes, Moment, Name, Shape
from memory.bounds import MAX_PROMPT_CHARS, Id

FolderName = Annotated[Name, Field(min_length=1)]
Instructions = Annotated[
    str,
    Field(max_length=MAX_PROMPT_CHARS, description="For every answer in it, after those of the agent."),
]
DefaultAgent = Annotated[
    Id | None, Field(description="Of conversations that begin in it; null: the default.")
]


class NewFolder(Body):
    name: FolderName
    instructions: Instructions = ""
    agent: DefaultAgent = None


class FolderChanges(Changes):
    NULLABLE = frozenset({"agent"})

    name: FolderName | None = None
    instructions: Instructions | None = None
    agent: DefaultAgent = None


class Folder(Shape):
    id: str
    name: str
    instructions: str
    agent: str | None
    created_at: Moment


def folder_shape(row: FolderRow) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "name": row.name,
        "instructions": row.instructions,
        "agent": row.agent.name if row.agent else None,
        "created_at": iso_time(row.created_at),
    }
