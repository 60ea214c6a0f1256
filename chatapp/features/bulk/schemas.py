"""What a change of several conversations takes and answers."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from chatapp.operations.http.schemas import Body, Shape
from memory.bounds import Id

MAX_AT_ONCE = 100
IDS_CHARS = MAX_AT_ONCE * 37

Action = Literal["archive", "unarchive", "move", "trash", "restore"]


class BulkChange(Body):
    ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_AT_ONCE)]
    action: Action
    folder: Id | None = Field(None, description="Of `move`: the id of the folder; null: none.")

    @model_validator(mode="after")
    def _only_moves_name_a_folder(self) -> Self:
        if "folder" in self.model_fields_set and self.action != "move":
            raise ValueError("folder is of the action move")
        return self


class Refused(Shape):
    id: str
    message: str


class BulkResult(Shape):
    done: list[str] = Field(description="Those that are as they were asked to be, changed by this or before.")
    not_found: list[str]
    refused: list[Refused]
