"""Prompts as the API and exports read and return them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from agents.text import storable_text
from chatapp.features.prompts.models import COMMANDS, MAX_PROMPT_NAME_CHARS, NAME_PATTERN
from chatapp.features.prompts.models import Prompt as PromptRow
from chatapp.operations.clock import iso_time
from chatapp.operations.http.schemas import Body, Changes, Moment, Name, Shape
from memory.bounds import MAX_PROMPT_CHARS, UtcMoment
from memory.strict_types import StrictTypes


def refuse_commands(name: str) -> str:
    """Return the name. Raise ValueError if it is a command of the composer."""
    if name in COMMANDS:
        raise ValueError(f"/{name} is a command")
    return name


PromptName = Annotated[
    str,
    Field(
        max_length=MAX_PROMPT_NAME_CHARS, pattern=NAME_PATTERN, description="What is typed behind the slash."
    ),
    AfterValidator(refuse_commands),
]
Text = Annotated[str, Field(min_length=1, max_length=MAX_PROMPT_CHARS)]


class NewPrompt(Body):
    name: PromptName
    about: Name = ""
    text: Text


class ExportedPrompt(StrictTypes):
    """A prompt of `prompts.json`, a file that anybody may have written."""

    name: PromptName
    # NUL and lone surrogates are rejected here, because this file does not pass the check of request bodies.
    about: Annotated[Name, AfterValidator(storable_text)] = ""
    text: Annotated[Text, AfterValidator(storable_text)]
    created_at: UtcMoment


class PromptChanges(Changes):
    name: PromptName | None = None
    about: Name | None = None
    text: Text | None = None


class Prompt(Shape):
    id: str
    name: str
    about: str
    text: str
    is_mine: bool
    created_at: Moment


def prompt_shape(row: PromptRow) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "name": row.name,
        "about": row.about,
        "text": row.text,
        "is_mine": row.owner_id is not None,
        "created_at": iso_time(row.created_at),
    }
