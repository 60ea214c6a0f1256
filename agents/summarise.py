"""Make the summary that memory asked for: one model call for each piece, or an extract without a model.

Whatever goes wrong ends in the extract, whose `fallback_reason` says why.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agents.asking import Asking, Sleep
from agents.errors import PASSING, ModelError
from agents.types import ChatModel, ModelRequest, TokenUsage
from memory.budget import TokenBudget
from memory.extractive import find_facts, write_extract
from memory.policy import ContextPolicy
from memory.strategies.protocol import Rejected, Summary, SummaryRequest
from memory.summary import bounded_summary
from memory.summary_prompts import Hint
from memory.superseding import split_superseded
from memory.tokens import Calibration, estimate_text, total_tokens
from memory.types import Message

LEAST_EXTRACT_TOKENS = 24
PLANS = 3
"""How often a summary is planned, where the model turns out to have a smaller window."""
NO_MODEL = "there is no model to write one"
NO_ROOM = "the summary model's window is too small"
CUT_OFF = "it was cut before its end"
EMPTY = "it returned nothing"
NO_FACTS = "it returned something that is not a summary"
_UNUSABLE = frozenset({CUT_OFF, EMPTY, NO_FACTS})
FAILURES: Mapping[str, str] = {
    "auth": "its key is not accepted",
    "not_found": "its address knows no such model",
    "rate_limit": "it had too many requests",
    "quota": "its account has no credit left",
    "budget": "a budget is used up",
    "overflow": "it takes less at once than was sent",
    "bad_request": "it refused the request",
    "server": "it has a failure of its own",
    "timeout": "it took too long",
    "stalled": "it stood still in the middle",
    "cut": "the connection to it broke",
    "bad_response": "it sent something that is not an answer",
    "connection": "it cannot be reached",
    "content_filter": "its content filter withheld the summary",
    "bound": "it wrote without an end",
}
"""Why a call failed, by the category of its error: for users, who read it behind the extract."""

BeforeCall = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """A summary and what it took.

    `usages` has one entry for each call, also for a failed one that wrote something. `fallback_reason` is None for a
    model's own summary; for an extract it completes "No model's summary: …". `window_tokens` is the window that a
    provider named when it refused a piece. `may_pass` says that what failed may work at another time.
    """

    text: str
    tokens: int
    usages: tuple[TokenUsage, ...] = ()
    fallback_reason: str | None = None
    window_tokens: int | None = None
    may_pass: bool = False
    superseded: tuple[tuple[int, str], ...] = ()
    """Which of the `known` statements are over, by their index, and the new statement of each."""

    @property
    def made_by(self) -> Literal["model", "extract"]:
        """Return how the text was made: by a model, or as an extract, of sentences of the conversation word for
        word."""
        return "model" if self.fallback_reason is None else "extract"


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
    """Return the summary of `previous` and `messages` together; an extract where no model's can be used.

    `window` and `calibration` are the summariser's. `before_call` is awaited before each piece; what it raises ends
    the work. The model is asked which of the `known` statements the messages supersede, too. Makes as many calls as
    memory planned pieces, and the retries of one call; where the model finds a piece too large, smaller ones are
    planned. `usages` gets what each call took as soon as it has ended.
    """
    if model is None:
        fallback = extract_fallback(messages, previous=previous, policy=policy, reason=NO_MODEL)
        return replace(fallback, may_pass=True)
    asking = Asking(model, policy.summary_timeout_s, sleep, usages=usages)
    form = replace(policy.summary_form, known=tuple(known))
    named: int | None = None
    reason, may_pass = NO_ROOM, False
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
            may_pass = error.category in PASSING
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
                may_pass = False
                break
    fallback = extract_fallback(messages, previous=previous, policy=policy, reason=reason)
    return replace(fallback, usages=tuple(asking.usages), window_tokens=named, may_pass=may_pass)


def _smaller_window(window: TokenBudget, error: ModelError) -> TokenBudget | None:
    """Return the window to plan with after a refusal: the one that was named, else half; None where it says nothing
    about the window."""
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
    asking: Asking,
    requests: Sequence[SummaryRequest],
    previous: str,
    policy: ContextPolicy,
    before_call: BeforeCall | None,
    known: Sequence[str],
) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Return (the last answer of the calls of one summary, each of which builds on the answer before; what all of them
    say is over).

    Raise ModelError, also where an answer is empty or no summary: the next one would be built on it.
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
    """Return whether a summary holds any fact of its source: an identifier, a number, a name.

    A refusal, an instruction, a fragment or a bare brace holds none. Where the source has hardly a fact, small talk for
    example, a summary may well name none of them: then it is judged by how it begins and by its length.
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
"""What a transcript adds: days and speakers are no facts of the conversation."""
_PARTING = re.compile(r"[\s_-]+")
"""A summary may name a range of identifiers, or a person by one name."""
_FACT_SIGN = re.compile(r"[^\Wa-z_]")
"""A digit, a capital letter or one of a script without capitals: the plain words of a quotation prove nothing."""
_REFUSAL_WORDS = frozenset(
    {
        "i", "i'm", "i’m", "i'd", "i’d", "ai", "sorry", "please", "provide", "sure", "here", "unfortunately",
        "conversation", "summary", "user", "assistant", "tool",
    }
)  # fmt: skip
"""What models say of themselves instead of a summary, and may stand in the conversation, too."""


LEAST_FACTS = 3
LEAST_LETTERS = 5
_QUOTATION_MARKS = "《》〈〉「」『』«»“”„‘’\"'`"
_WRITTEN_NUMBER = re.compile(
    "[零〇一二两三四五六七八九十百千万萬億亿兆]+[分回度次点号]?|[영공일이삼사오육칠팔구십백천만억]+"
)
"""Numerals in words are often no numbers: 十分 means "very", 千万 "be sure to"."""
_REFUSAL = re.compile(
    r"\W*(?:i['’]?m sorry|i am sorry|sorry|unfortunately|i can['’]?t|i can ?not|as an ai|please provide"
    r"|es tut mir leid|lo siento|je suis désolée?|mi dispiace|desculpe|извините|к сожалению|آسف"
    r"|抱歉|对不起|很遗憾|申し訳|すみません|죄송)",
    re.IGNORECASE,
)


def _in_ascii_digits(text: str) -> str:
    """Return the text with the digits of every script as 0 to 9: a summary may write them in another one."""
    return "".join(str(unicodedata.digit(sign)) if sign.isdigit() else sign for sign in text)


def _is_in(fact: str, text: str) -> bool:
    fact, text = fact.casefold(), text.casefold()
    if not fact.isascii():
        return fact in text  # not every script parts its words
    return fact in text and re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", text) is not None


def _name_reason(error: ModelError) -> str:
    why = error.detail if error.detail in _UNUSABLE else FAILURES[error.category]
    return f"the summary model failed ({why})"
