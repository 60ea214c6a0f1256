"""Run the calls of one step in parallel. A call that fails gets a failed result and does not affect the others."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from agents.loop.tool_calls import PreparedCall
from agents.ports import CallResult, CallState, RequestedCall, ResultStore, ToolUse
from agents.text import storable_text
from agents.tools.protocol import ResultLimit, Tool, ToolFailure, ToolOutput, ToolUncertain
from agents.tools.tool_results import excerpt_of, write_excerpt, write_unkept
from memory.language.neutral_text import neutralise
from memory.turns import INTERRUPTED
from memory.types import ImagePart, ToolResultPart

log = logging.getLogger(__name__)
_T = TypeVar("_T")

LARGE_CHARS = 100_000
"""Processing a longer text in the event loop would block it for too long."""
CANCEL_WAIT_S = 2.0
DENIED = "The user denied this call. Do not try it again; go on without it, or ask what to do instead."
TIMED_OUT = "The user did not approve this call in time, so it was not run. Go on without it, or ask."
NOBODY_TO_ASK = "This call needs the user's approval, and there is nobody to ask here."
NOT_AGAIN = (
    f"{INTERRUPTED} It is not repeated: say so, and let the user decide in a new message whether to do it."
)


async def run_calls(
    calls: Sequence[PreparedCall], use: ToolUse, limit: ResultLimit
) -> AsyncGenerator[CallResult, None]:
    """Yield the results as the calls end. Closing the generator cancels the calls that still run."""
    tasks = [asyncio.create_task(_run_call(prepared, use, limit)) for prepared in calls]
    try:
        for finished in asyncio.as_completed(tasks):
            yield await finished
    finally:
        running = [task for task in tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            # A tool that cannot be cancelled is abandoned, so that the run can end.
            await asyncio.wait(running, timeout=CANCEL_WAIT_S)


async def _run_call(prepared: PreparedCall, use: ToolUse, limit: ResultLimit) -> CallResult:
    result = await _find_result(prepared, use, limit)
    await use.records.record_result(result)
    return result


async def _find_result(prepared: PreparedCall, use: ToolUse, limit: ResultLimit) -> CallResult:
    call, tool = prepared.call, prepared.tool
    if prepared.problem or tool is None:
        return await _end(call, "failed", prepared.problem, use, limit)
    if prepared.key in use.earlier and not call.is_idempotent:
        text = use.earlier[prepared.key]
        state: CallState = "interrupted" if text is None else "done"
        return await _end(call, state, NOT_AGAIN if text is None else text, use, limit)
    if tool.traits.needs_consent:
        refusal = await _ask_consent(call, use)
        if refusal:
            return await _end(call, "denied", refusal, use, limit)
        await use.records.record_running(call)
    return await _call(prepared, tool, use, limit)


async def _ask_consent(call: RequestedCall, use: ToolUse) -> str:
    """Return why the call is not run; empty if the user approved it."""
    if use.consents is None:
        return NOBODY_TO_ASK
    decision = await use.consents.ask(call)
    return {"approved": "", "denied": DENIED, "timed_out": TIMED_OUT}[decision]


async def _call(prepared: PreparedCall, tool: Tool, use: ToolUse, limit: ResultLimit) -> CallResult:
    call = prepared.call
    limit = replace(limit, tokens=min(limit.tokens, tool.traits.result_limit_tokens or limit.tokens))
    timeout = asyncio.timeout(tool.traits.timeout_s)
    try:
        async with timeout:
            output = await tool.call(prepared.arguments, replace(use.caller, limit=limit))
    except ToolUncertain as unknown:
        # Must be caught before ToolFailure, its base class.
        state, text = _describe_unknown(call, str(unknown))
    except ToolFailure as failure:
        state, text = "failed", str(failure)
    except TimeoutError as error:
        # The TimeoutError may be the tool's own.
        if timeout.expired():
            late = f"The tool did not answer within {tool.traits.timeout_s:g} s."
            state, text = _describe_unknown(call, late)
        else:
            state, text = "failed", _name_error(error)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # The tool cancelled itself, as libraries with their own cancel scopes do.
        state, text = "failed", _name_error(error)
    except Exception as error:
        log.exception("The tool %s failed.", call.name)
        state, text = "failed", _name_error(error)
    else:
        images = _shown_images(output) if tool.traits.shows_images else ()
        lines = [] if images else await _keep_images(call.name, output, use)
        text = "\n".join([*([output.text] if output.text else []), *lines])
        return await _end(call, "done", text, use, limit, images)
    return await _end(call, state, text, use, limit)


def _describe_unknown(call: RequestedCall, text: str) -> tuple[CallState, str]:
    """Return (state, text) of a call that may or may not have happened."""
    return ("failed", text) if call.is_idempotent else ("interrupted", f"{text} {INTERRUPTED}")


def _name_error(error: BaseException) -> str:
    return f"The tool failed: {type(error).__name__}."


async def _end(
    call: RequestedCall,
    state: CallState,
    text: str,
    use: ToolUse,
    limit: ResultLimit,
    images: tuple[ImagePart, ...] = (),
) -> CallResult:
    """Return the result as neutralised text for the model; a text that is too large is stored, and an excerpt shown."""
    whole = await _beside_loop(lambda text: neutralise(storable_text(text)), text)
    part = ToolResultPart(call.call_id, call.name, whole, is_error=state != "done")
    excerpt = await _beside_loop(lambda text: excerpt_of(text, limit), whole)
    if excerpt is None:
        return CallResult(call, state, part, images, whole=whole)
    reference = await keep_text(part, use.store)
    if reference is None:
        text = write_unkept(excerpt, is_done=state == "done", may_repeat=call.is_idempotent)
        # It fails, so that the model makes the call again for less.
        state = "failed" if state == "done" and call.is_idempotent else state
        part = replace(part, text=text, is_error=state != "done")
        return CallResult(call, state, part, images, is_cut=True, whole=whole)
    shown = write_excerpt(excerpt, reference, [offered.spec.name for offered in use.tools])
    part = replace(part, text=shown, offload_ref=reference)
    return CallResult(call, state, part, images, is_cut=True, whole=whole)


async def _beside_loop(work: Callable[[str], _T], text: str) -> _T:
    """Return the result of the work, done in a thread if the text is large."""
    return await asyncio.to_thread(work, text) if len(text) > LARGE_CHARS else work(text)


async def keep_text(part: ToolResultPart, store: ResultStore | None) -> str | None:
    """Return the reference of the stored text; None if it is not stored."""
    if store is None:
        return None
    try:
        return await store.keep_text(part)
    except ToolFailure as failure:
        log.warning("A result of %s could not be stored: %s", part.name, failure)
        return None


def _shown_images(output: ToolOutput) -> tuple[ImagePart, ...]:
    """Return the images, which the model sees in this turn only."""
    return tuple(
        ImagePart(
            "", image.mime_type, data_url=f"data:{image.mime_type};base64,{b64encode(image.data).decode()}"
        )
        for image in output.images
    )


async def _keep_images(tool_name: str, output: ToolOutput, use: ToolUse) -> list[str]:
    """Return a line for each image: its reference, or why it is not stored."""
    lines = []
    for image in output.images:
        try:
            place = "not kept" if use.store is None else await use.store.keep_image(image, tool_name)
        except ToolFailure as failure:
            place = str(failure)
        lines.append(f"[Image ({image.mime_type}): {place}]")
    return lines
