"""Runs the calls of one step at the same time. What goes wrong in one of them is its own result, and nobody else's."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from agents.ports import CallResult, CallState, RequestedCall, ToolUse
from agents.text import storable_text
from agents.tool_calls import PreparedCall
from agents.tool_results import Excerpt, excerpt_of, write_excerpt, write_refusal, write_unkept
from agents.tools.protocol import ResultLimit, Tool, ToolFailure, ToolOutput, ToolUncertain
from memory.turns import INTERRUPTED
from memory.types import ImagePart, ToolResultPart

log = logging.getLogger(__name__)

LARGE_CHARS = 100_000
"""Cutting more than this takes longer than the event loop may stand still."""
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
    """The results as they come. Closed early, it cancels what still runs."""
    tasks = [asyncio.create_task(_run_call(prepared, use, limit)) for prepared in calls]
    try:
        for finished in asyncio.as_completed(tasks):
            yield await finished
    finally:
        running = [task for task in tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            # A tool that does not let itself be cancelled is left alone: the run ends without it.
            await asyncio.wait(running, timeout=CANCEL_WAIT_S)


async def _run_call(prepared: PreparedCall, use: ToolUse, limit: ResultLimit) -> CallResult:
    result = await _find_result(prepared, use, limit)
    await use.records.record_result(result)
    return result


async def _find_result(prepared: PreparedCall, use: ToolUse, limit: ResultLimit) -> CallResult:
    call, tool = prepared.call, prepared.tool
    if prepared.problem or tool is None:
        return _ended(call, "failed", prepared.problem)
    earlier = use.earlier.get(prepared.key)
    if earlier is not None and not call.is_idempotent:
        return _ended(call, "interrupted" if earlier.text is None else "done", earlier.text or NOT_AGAIN)
    if tool.traits.needs_consent:
        refusal = await _refusal(call, use)
        if refusal:
            return _ended(call, "denied", refusal)
        await use.records.record_running(call)
    return await _call(prepared, tool, use, limit)


async def _refusal(call: RequestedCall, use: ToolUse) -> str:
    """Empty where the user approved."""
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
        return _unknown(call, str(unknown))
    except ToolFailure as failure:
        return _ended(call, "failed", str(failure))
    except TimeoutError as error:
        if not timeout.expired():
            return _broken(call, error)
        return _unknown(call, f"The tool did not answer within {tool.traits.timeout_s:g} s.")
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _broken(call, error)  # the tool cancelled itself, as libraries with scopes of their own do
    except Exception as error:
        log.exception("The tool %s failed.", call.name)
        return _broken(call, error)
    return await _shape(call, tool, output, use, limit)


def _unknown(call: RequestedCall, text: str) -> CallResult:
    if call.is_idempotent:
        return _ended(call, "failed", text)
    return _ended(call, "interrupted", f"{text} {INTERRUPTED}")


def _broken(call: RequestedCall, error: BaseException) -> CallResult:
    return _ended(call, "failed", f"The tool failed: {type(error).__name__}.")


def _ended(call: RequestedCall, state: CallState, text: str) -> CallResult:
    text = storable_text(text)
    part = ToolResultPart(call.call_id, call.name, text, is_error=state != "done")
    return CallResult(call, state, part, whole=text)


async def _shape(
    call: RequestedCall, tool: Tool, output: ToolOutput, use: ToolUse, limit: ResultLimit
) -> CallResult:
    """Cut and stored where it is too large; images stored, with a line for each."""
    images = _shown(output) if tool.traits.shows_images else ()
    lines = [] if images else await _keep_images(call.name, output, use)
    whole = storable_text("\n".join([*([output.text] if output.text else []), *lines]))
    part = ToolResultPart(call.call_id, call.name, whole)
    excerpt = await _excerpt(whole, limit)
    if excerpt is None:
        return CallResult(call, "done", part, images, whole=whole)
    reference = await _keep_text(part, use)
    if reference is None:
        return _unkept(call, replace(part, is_error=call.is_idempotent), excerpt, images)
    text = write_excerpt(excerpt, reference, [offered.spec.name for offered in use.tools])
    shown = replace(part, text=text, offload_ref=reference)
    return CallResult(call, "done", shown, images, is_cut=True, whole=whole)


async def _keep_text(part: ToolResultPart, use: ToolUse) -> str | None:
    """None where there is no store, or none that takes it."""
    if use.store is None:
        return None
    try:
        return await use.store.keep_text(part)
    except ToolFailure as failure:
        log.warning("A result of %s is not kept: %s", part.name, failure)
        return None


def _unkept(
    call: RequestedCall, part: ToolResultPart, excerpt: Excerpt, images: tuple[ImagePart, ...]
) -> CallResult:
    """A call that only reads is made again, for less; one that did something was done."""
    text = write_refusal(excerpt) if call.is_idempotent else write_unkept(excerpt)
    state: CallState = "failed" if call.is_idempotent else "done"
    return CallResult(call, state, replace(part, text=text), images, is_cut=True, whole=part.text)


async def _excerpt(text: str, limit: ResultLimit) -> Excerpt | None:
    if len(text) > LARGE_CHARS:
        return await asyncio.to_thread(excerpt_of, text, limit)
    return excerpt_of(text, limit)


def _shown(output: ToolOutput) -> tuple[ImagePart, ...]:
    """For the eyes of the model, in this turn only."""
    return tuple(
        ImagePart(
            "", image.mime_type, data_url=f"data:{image.mime_type};base64,{b64encode(image.data).decode()}"
        )
        for image in output.images
    )


async def _keep_images(tool_name: str, output: ToolOutput, use: ToolUse) -> list[str]:
    """A line for each: where it is, or why it is nowhere."""
    lines = []
    for image in output.images:
        try:
            place = "not kept" if use.store is None else await use.store.keep_image(image, tool_name)
        except ToolFailure as failure:
            place = str(failure)
        lines.append(f"[Image ({image.mime_type}): {place}]")
    return lines
