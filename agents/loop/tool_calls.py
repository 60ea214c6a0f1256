"""Turn streamed tool calls into calls that can run: joined, validated against their schemas, with our own ids."""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from agents.libraries import Library
from agents.ports import CallKey, CallResult, CallState, RequestedCall
from agents.text import read_json, storable_text
from agents.tools.protocol import Tool
from agents.types import ToolCallDelta
from memory.tokens import estimate_parts
from memory.types import Message, ReasoningPart, TextPart, ToolCallPart

if TYPE_CHECKING:
    import jsonschema
    import referencing
else:
    jsonschema, referencing = Library("jsonschema"), Library("referencing")

MAX_CALLS = 64
CUT_CALL = "The answer was cut off before this call was whole, so it was not run. Call again."
_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
ID_LENGTH = 9
"""Nine letters or digits: the only call ids that Mistral accepts."""


@dataclass(slots=True)
class _Draft:
    their_id: str
    name: str
    arguments: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Return whether the arguments came complete in one piece. More pieces, maybe very many, are not parsed."""
        return len(self.arguments) == 1 and isinstance(read_json(self.arguments[0]), dict)


class CallCollector:
    """Joins the fragments of a stream into calls."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        """Index in `_drafts` by the server's index."""
        self._drafts: list[_Draft] = []

    def add(self, delta: ToolCallDelta) -> int:
        """Add a fragment to its call and return the index of that call in `calls`."""
        place = self._open.get(delta.index)
        if place is None or self._begins_another(self._drafts[place], delta):
            place = self._open[delta.index] = len(self._drafts)
            self._drafts.append(_Draft(delta.call_id, delta.name))
        draft = self._drafts[place]
        draft.name = draft.name or delta.name
        draft.arguments.append(delta.arguments)
        return place

    @staticmethod
    def _begins_another(draft: _Draft, delta: ToolCallDelta) -> bool:
        """Return whether a new call begins: some servers give all calls the same index but different ids and names, and
        some send each call complete and without an id."""
        if not delta.name or not draft.name:
            return False
        if delta.call_id or draft.their_id:
            return delta.call_id != draft.their_id
        return bool(delta.arguments) and draft.is_whole

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Return (name, arguments) of each call, in order."""
        return [(draft.name, "".join(draft.arguments)) for draft in self._drafts]


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A checked call. `problem` tells the model why the call cannot run; only then may `tool` be None."""

    call: RequestedCall
    tool: Tool | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    @property
    def key(self) -> CallKey:
        return call_key(self.call.name, self.call.arguments)


class CallChecker:
    """Looks up the tools of calls and validates arguments against their schemas."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}

    def prepare(
        self, calls: Sequence[tuple[str, str]], step: int, *, is_cut: bool = False
    ) -> list[PreparedCall]:
        """Return the calls of a step, ready to run or with their problem. Of the calls over MAX_CALLS only the first is
        returned, as refused: each costs rows and events. `is_cut`: the answer may have ended within the last one."""
        if is_cut and len(calls) <= MAX_CALLS and not isinstance(read_json(calls[-1][1]), dict):
            cut = PreparedCall(_requested(*calls[-1], step), problem=CUT_CALL)
            return [*self.prepare(calls[:-1], step), cut]
        prepared = [self._prepare(name, arguments, step) for name, arguments in calls[:MAX_CALLS]]
        if len(calls) <= MAX_CALLS:
            return prepared
        name, text = calls[MAX_CALLS]
        left_out = len(calls) - MAX_CALLS
        too_many = (
            f"At most {MAX_CALLS} calls can be made at once; {left_out:,} from this one on were not run."
        )
        return [*prepared, PreparedCall(_requested(name, text, step), problem=too_many)]

    def _prepare(self, name: str, text: str, step: int) -> PreparedCall:
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            return PreparedCall(
                _requested(name, text, step), problem=f"There is no tool {name!r}. There are: {known}."
            )
        try:
            arguments = read_arguments(text)
        except ValueError as error:
            return PreparedCall(_requested(name, text, step, tool), tool, problem=str(error))
        problem = self._check(tool, arguments)
        state: CallState = "requested" if problem else "waiting" if tool.traits.needs_consent else "running"
        return PreparedCall(_requested(name, text, step, tool, state), tool, arguments, problem)

    def _check(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        spec = tool.spec
        try:
            # As text, because the cache needs hashable arguments.
            validator = _validator(json.dumps(spec.parameters or {"type": "object"}))
            error = jsonschema.exceptions.best_match(validator.iter_errors(arguments))
        except (
            jsonschema.SchemaError,
            referencing.exceptions.Unresolvable,
            RecursionError,
            ValueError,
            TypeError,
            AttributeError,
        ) as broken:
            return f"The tool {spec.name} cannot be used: its schema is broken ({broken})."
        except OverflowError:  # from dividing by a `multipleOf`
            return "The arguments do not fit: a number in them is too large."
        if error is None:
            return ""
        where = ".".join(str(step) for step in error.absolute_path) or "the arguments"
        return f"The arguments do not fit: {where}: {error.message[:500]}"


@lru_cache(maxsize=1_000)
def _validator(schema_json: str) -> jsonschema.protocols.Validator:
    """Return the validator of a schema. Raise SchemaError. Cached, because checking a schema is slow."""
    schema = json.loads(schema_json)
    dialect = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    dialect.check_schema(schema)
    # An empty registry, because the default one would fetch references from the network.
    return dialect(schema, registry=referencing.Registry())


def _requested(
    name: str, arguments: str, step: int, tool: Tool | None = None, state: CallState = "requested"
) -> RequestedCall:
    call_id = "".join(secrets.choice(_ID_ALPHABET) for _ in range(ID_LENGTH))
    is_idempotent = tool is None or tool.traits.is_idempotent
    # Providers refuse a history that contains an invalid tool name.
    allowed = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed"
    return RequestedCall(call_id, allowed, storable_text(arguments), step, state, is_idempotent)


def read_arguments(text: str) -> dict[str, Any]:
    """Parse the arguments that a model wrote. Raise ValueError with a sentence for the model."""
    if not text.strip():
        return {}
    try:
        arguments = json.loads(text, parse_float=_read_float, parse_constant=_read_float)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The arguments are not valid JSON: {error}. Write them again, complete.") from None
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise ValueError("The arguments have to be one JSON object.")
    return arguments


def _read_float(text: str) -> float:
    """Return a number that can be written as JSON again. Python's parser also accepts NaN and infinity."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a number in JSON")
    return number


def call_key(name: str, arguments: str) -> CallKey:
    """Return a key that is the same for equal arguments in any order and spacing."""
    try:
        return name, json.dumps(json.loads(arguments or "{}"), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return name, arguments


def calling_message(text: str, calls: Sequence[RequestedCall], thought: str = "") -> Message:
    """Return the assistant message with these calls. `thought` is reasoning to send back in the steps that follow."""
    thoughts = (ReasoningPart(thought),) if thought else ()
    said = (TextPart(text),) if text.strip() else ()
    parts = (
        *thoughts,
        *said,
        *(calling_part(call.call_id, call.name, call.arguments) for call in calls),
    )
    return Message(role="assistant", parts=parts, tokens=estimate_parts(parts))


def calling_part(call_id: str, name: str, arguments: str) -> ToolCallPart:
    """Return the call as part of a message. Its arguments are always a JSON object, or servers refuse the history."""
    try:
        read_arguments(arguments)
    except ValueError:
        arguments = json.dumps({"unreadable": arguments}, ensure_ascii=False)
    return ToolCallPart(call_id, name, arguments or "{}")


REPEATS_ALLOWED = 2
"""How often a call may have the same result. After the next repetition the model is warned, then the loop ends."""

Verdict = Literal["fine", "warn", "end"]


class CycleWatch:
    """Detects a model that repeats the same call with the same arguments and gets the same result."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()
        self._was_warned = False

    def check(self, results: Sequence[CallResult]) -> Verdict:
        """Return what to do after a step: `end` only if the model was warned before."""
        repeated = 0
        # Use a set, so that equal parallel calls count once.
        for fingerprint in {_fingerprint(result) for result in results}:
            self._seen[fingerprint] += 1
            repeated = max(repeated, self._seen[fingerprint])
        if repeated <= REPEATS_ALLOWED:
            return "fine"
        if self._was_warned:
            return "end"
        self._was_warned = True
        return "warn"


def _fingerprint(result: CallResult) -> bytes:
    said = (*call_key(result.call.name, result.call.arguments), result.whole)
    return hashlib.blake2b("\x00".join(said).encode("utf-8", "surrogatepass")).digest()
