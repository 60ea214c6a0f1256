"""Write the summary that memory requested: one model call for each piece, or an extract without a model.

If the model fails in any way, the result is an extract, and `fallback_reason` says why.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agents.background.calls import BackgroundCaller, Sleep
from agents.errors import PASSING, ModelError
from agents.types import ChatModel, ModelRequest, TokenUsage
from memory.budget import TokenBudget
from memory.long_term.superseding import split_superseded
from memory.strategies.protocol import Rejected, Summary, SummaryRequest
from memory.summaries.extractive import find_facts, write_extract
from memory.summaries.summary import bounded_summary
from memory.summaries.summary_prompts import Hint
from memory.tokens import Calibration, estimate_text, total_tokens
from memory.types import Message
from memory.window.policy import ContextPolicy

LEAST_EXTRACT_TOKENS = 24
PLANS = 3
"""Maximum number of plans for one summary, if the model turns out to have a smaller window."""
NO_MODEL = "there is no model to write one"
NO_ROOM = "the summary model's window is too small"
CUT_OFF = "it was cut before its end"
EMPTY = "it returned nothing"
NO_FACTS = "it returned something that is not a summary"
_UNUSABLE = frozenset({CUT_OFF, EMPTY, NO_FACTS})
FAILURES: Mapping[str, str] = {
    "auth": "its key is not accepted",
    "not_found": "its address does not know this model",
    "rate_limit": "it had too many requests",
    "quota": "its account has no credit left",
    "budget": "a budget is used up",
    "overflow": "it accepts less at once than was sent",
    "bad_request": "it refused the request",
    "server": "it had an internal error",
    "timeout": "it took too long",
    "stalled": "it stalled",
    "cut": "the connection to it broke",
    "bad_response": "it sent something that is not an answer",
    "connection": "it cannot be reached",
    "content_filter": "its content filter withheld the summary",
    "bound": "it exceeded the output limit",
}
"""Why a call failed, by the category of its error. Users read it with the extract."""

BeforeCall = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """A summary and what it used.

    `usages` has one entry for each call, including failed ones that wrote something. `fallback_reason` is None if a
    model wrote the summary; if it is an extract, sentences of the conversation word for word, the reason completes "No
    model's summary: …". `window_tokens` is the window that a provider named when it refused a piece. `is_transient`
    means that a later attempt may succeed.
    """

    text: str
    tokens: int
    usages: tuple[TokenUsage, ...] = ()
    fallback_reason: str | None = None
    window_tokens: int | None = None
    is_transient: bool = False
    superseded: tuple[tuple[int, str], ...] = ()
    """(index in `known`, new statement) of each superseded statement."""


@dataclass(frozen=True, slots=True)
class Summariser:
    """A model that summarises in the middle of an answer, with its own window. `note` is called with each summary."""

    model: ChatModel
    window: TokenBudget
    calibration: Calibration
    note: Callable[[SummaryResult], None]

    async def summarise(
        self, messages: Sequence[Message], *, previous: str, policy: ContextPolicy, hint: Hint
    ) -> SummaryResult:
        summary = await summarise(
            self.model,
            messages,
            previous=previous,
            policy=policy,
            window=self.window,
            calibration=self.calibration,
            hint=hint,
        )
        self.note(summary)
        return summary


async def summarise(
    model: ChatModel | None,
    messages: Sequence[Message],
    *,
    previous: str,
    policy: ContextPolicy,
    window: TokenBudget,
    calibration: Calibration = Calibration(),
    hint: Hint = "general",
    keep: str = "",
    sleep: Sleep = asyncio.sleep,
    before_call: BeforeCall | None = None,
    known: Sequence[str] = (),
    usages: list[TokenUsage] | None = None,
) -> SummaryResult:
    """Summarise `previous` and `messages` together. Return an extract if no model's summary can be used.

    `window` and `calibration` are the summariser's. `before_call` is awaited before each piece; its errors end the
    work. The model also says which of the `known` statements the messages supersede. There is one call for each piece
    that memory planned, and all calls share the retries of one; if the model finds a piece too large, smaller ones are
    planned. The usage of each call is added to `usages` as soon as the call has ended.
    """
    if model is None:
        fallback = extract_fallback(messages, previous=previous, policy=policy, reason=NO_MODEL)
        return replace(fallback, is_transient=True)
    asking = BackgroundCaller(model, policy.summary_timeout_s, sleep, usages=usages)
    form = replace(policy.summary_form, known=tuple(known))
    named: int | None = None
    reason, is_transient = NO_ROOM, False
    for _ in range(PLANS):
        requests = policy.behaviour.requests(
            messages,
            previous=previous,
            form=form,
            window=window,
            calibration=calibration,
            hint=hint,
            keep=keep,
        )
        if not requests:
            break
        try:
            answer, superseded = await _run(asking, requests, previous, policy, before_call, known)
        except ModelError as error:
            reason, named = _name_reason(error), error.window_tokens or named
            is_transient = error.category in PASSING
            smaller = _smaller_window(window, error)
            if smaller is None:
                break
            window = smaller
            continue
        match policy.behaviour.accept(answer, source=messages, previous=previous, form=form):
            case Summary(text, tokens):
                taken = tuple(asking.usages)
                return SummaryResult(text, tokens, taken, window_tokens=named, superseded=superseded)
            case Rejected(reason):
                is_transient = False
                break
    fallback = extract_fallback(messages, previous=previous, policy=policy, reason=reason)
    return replace(fallback, usages=tuple(asking.usages), window_tokens=named, is_transient=is_transient)


def _smaller_window(window: TokenBudget, error: ModelError) -> TokenBudget | None:
    """Return the window to plan with after an overflow: the one the provider named, or else half. None for any other
    error."""
    if error.category != "overflow":
        return None
    named = error.window_tokens or 0
    tokens = named if 0 < named < window.context_size else window.context_size // 2
    return replace(window, context_size=tokens, max_output_tokens=min(window.max_output_tokens, tokens // 2))


def extract_fallback(
    messages: Sequence[Message], *, previous: str, policy: ContextPolicy, reason: str
) -> SummaryResult:
    """Return the sentences that carry facts, at most half as long as their source.

    `reason` says why no model summarised them.
    """
    covered = total_tokens(messages) + estimate_text(previous)
    space = max(LEAST_EXTRACT_TOKENS, min(policy.summary_max_tokens, covered // 2))
    text = write_extract(previous, messages, space)
    return SummaryResult(text, estimate_text(text), fallback_reason=reason)


async def _run(
    asking: BackgroundCaller,
    requests: Sequence[SummaryRequest],
    previous: str,
    policy: ContextPolicy,
    before_call: BeforeCall | None,
    known: Sequence[str],
) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Return (answer of the last call, statements that any call found superseded). Each call builds on the answer
    before.

    Raise ModelError, also if an answer is empty or not a summary, because the next one would build on it.
    """
    answer, superseded = previous, dict[int, str]()
    for request in requests:
        if before_call is not None:
            await before_call()
        # An answer far over its limit would leave no room for the next piece.
        earlier = bounded_summary(answer, policy.summary_max_tokens * 3 // 2)
        asked = ModelRequest(
            request.messages(earlier), request.max_output_tokens, temperature=policy.summary_temperature
        )
        answer, over = split_superseded(await asking.ask(asked), known)
        if asking.last_reason in ("length", "content_filter", "lost"):
            raise ModelError("bad_response", "The summary was cut off.", detail=CUT_OFF)
        if not answer.strip():
            raise ModelError("bad_response", "The summary model returned nothing.", detail=EMPTY)
        if not carries_facts(answer, f"{earlier}\n{request.transcript}"):
            raise ModelError("bad_response", "The summary model returned no summary.", detail=NO_FACTS)
        superseded |= dict(over)
    return answer, tuple(superseded.items())


def carries_facts(summary: str, source: str) -> bool:
    """Return whether a summary contains any fact of its source: an identifier, a number, a name.

    A refusal, an instruction, a fragment or a bare brace contains none. If the source has hardly any facts, e.g. small
    talk, a summary may well contain none of them, and is judged by its beginning and its length instead.
    """
    found = {fact.strip(_QUOTATION_MARKS) for fact in find_facts(_FRAME.sub("", source))}
    parts = {part for fact in found for part in _PARTING.split(fact) if len(part) > 1}
    facts = {
        fact for fact in found | parts if _FACT_SIGN.search(fact) and not _WRITTEN_NUMBER.fullmatch(fact)
    }
    facts = {fact for fact in facts if fact.casefold() not in _REFUSAL_WORDS}
    if len(facts) < LEAST_FACTS:
        letters = sum(sign.isalpha() for sign in summary)
        return letters >= LEAST_LETTERS and _REFUSAL.match(summary) is None
    summary = _in_ascii_digits(summary)
    return any(_is_in(_in_ascii_digits(fact), summary) for fact in facts)


_FRAME = re.compile(r"^\[\d{4}-\d\d-\d\d\]$|^(?:User|Assistant|System|Tool): ", re.MULTILINE)
"""Added by the transcript: days and speakers are not facts of the conversation."""
_PARTING = re.compile(r"[\s_-]+")
"""A summary may name only a part of a fact: one identifier of a range, or one name of a person."""
_FACT_SIGN = re.compile(r"[^\Wa-z_]")
"""A fact needs a digit, a capital letter or a letter of a script without capitals: plain words prove nothing."""
_REFUSAL_WORDS = frozenset(
    {
        "i", "i'm", "i’m", "i'd", "i’d", "ai", "sorry", "please", "provide", "sure", "here", "unfortunately",
        "conversation", "summary", "user", "assistant", "tool",
    }
)  # fmt: skip
"""Words in which models refuse to summarise, and which may occur in the conversation, too."""


LEAST_FACTS = 3
LEAST_LETTERS = 5
_QUOTATION_MARKS = "《》〈〉「」『』«»“”„‘’\"'`"
_WRITTEN_NUMBER = re.compile(
    "[零〇一二两三四五六七八九十百千万萬億亿兆]+[分回度次点号]?|[영공일이삼사오육칠팔구십백천만억]+"
)
"""Numerals in words are often not numbers: 十分 means "very", 千万 "be sure to"."""
_REFUSAL = re.compile(
    r"\W*(?:i['’]?m sorry|i am sorry|sorry|unfortunately|i can['’]?t|i can ?not|as an ai|please provide"
    r"|es tut mir leid|lo siento|je suis désolée?|mi dispiace|desculpe|извините|к сожалению|آسف"
    r"|抱歉|对不起|很遗憾|申し訳|すみません|죄송)",
    re.IGNORECASE,
)


def _in_ascii_digits(text: str) -> str:
    """Return the text with the digits of every script as 0 to 9, because source and summary may use different ones."""
    return "".join(str(unicodedata.digit(sign)) if sign.isdigit() else sign for sign in text)


def _is_in(fact: str, text: str) -> bool:
    fact, text = fact.casefold(), text.casefold()
    if not fact.isascii():
        return fact in text  # not every script separates words
    return fact in text and re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", text) is not None


def _name_reason(error: ModelError) -> str:
    why = error.detail if error.detail in _UNUSABLE else FAILURES[error.category]
    return f"the summary model failed ({why})"
