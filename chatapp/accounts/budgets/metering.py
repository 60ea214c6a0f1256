"""A chat model whose calls hold part of the budgets before they start, and settle to the actual usage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal

from agents.chat_models.usage import CallMeter, count_request
from agents.errors import ModelError
from agents.types import ChatModel, Finished, ModelItem, ModelRequest, TokenUsage
from chatapp.accounts.budgets.actions import Amount, Hold, hold, is_held, settle
from chatapp.accounts.budgets.values import NANOS, Spender
from chatapp.operations import clock
from chatapp.operations.database.threads import Once, first_in_writer, in_writer, retry_on_outage

EXPECTED_OUTPUT_TOKENS = 1_000
"""Output tokens that a call holds at most: with its whole output limit, one call could lock out all others."""

Price = Callable[[TokenUsage], Decimal | None]


@dataclass(frozen=True, slots=True)
class MeteredModel:
    """Calls `model` on behalf of a spender. `price` returns the cost of usage in dollars, None if it is unknown."""

    model: ChatModel
    spender: Spender
    price: Price

    @property
    def name(self) -> str:
        return self.model.name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        """Yield the model's items. Raise ModelError, with category `budget` if the model was not called."""
        output_tokens = min(request.max_output_tokens or EXPECTED_OUTPUT_TOKENS, EXPECTED_OUTPUT_TOKENS)
        expected = TokenUsage(count_request(request), output_tokens, exact=False)
        held: Hold | None = await hold_for(self.spender, self._amount(expected))
        meter = CallMeter()
        try:
            # Close the stream at once, not at garbage collection: a stopped answer would go on costing money.
            async with aclosing(self.model.stream(request)) as items:
                async for item in items:
                    meter.add(item)
                    if isinstance(item, Finished) and held is not None:
                        # Clear `held` first, so that a call that is cancelled while it waits is not settled twice.
                        settled, held = held, None
                        # Settle before yielding: if the consumer stops here, an estimate would be counted.
                        await settle_for(self.spender, settled, self._amount(item.usage))
                    yield item
        except ModelError as error:
            meter.fail(error)
            raise
        finally:
            if held is not None:  # the call broke off: count what it used; a refused call costs nothing
                used = meter.read(request) or TokenUsage()
                await settle_for(self.spender, held, self._amount(used))

    def _amount(self, usage: TokenUsage) -> Amount:
        cost = self.price(usage)
        return Amount(usage.input_tokens + usage.output_tokens, int((cost or 0) * NANOS))


@asynccontextmanager
async def held_while(spender: Spender, amount: Amount) -> AsyncIterator[None]:
    """Hold the amount while the body runs, and count it if the body succeeds. Raise ModelError (budget)."""
    held = await hold_for(spender, amount)
    used = Amount(0, 0)
    try:
        yield
        used = amount
    finally:
        await settle_for(spender, held, used)


async def hold_for(spender: Spender, amount: Amount) -> Hold:
    """Hold the amount; release it if the caller is cancelled meanwhile. Raise ModelError (budget)."""
    held = Hold(amount, clock.now())
    # Urgent, because the first word of an answer waits for it.
    write = retry_on_outage(Once(hold, is_held), first_in_writer)
    holding = asyncio.ensure_future(write(spender=spender, held=held))
    try:
        await asyncio.shield(holding)
    except asyncio.CancelledError:
        # The thread goes on in any case, and only this task knows its hold.
        await asyncio.shield(asyncio.ensure_future(_give_back(spender, held, holding)))
        raise
    return held


async def _give_back(spender: Spender, held: Hold, holding: asyncio.Future[None]) -> None:
    await asyncio.wait([holding])
    if holding.exception() is None:
        await settle_for(spender, held, Amount(0, 0))


async def settle_for(spender: Spender, held: Hold, used: Amount) -> None:
    """Settle, even if the caller is cancelled meanwhile."""
    now = clock.now()
    warnings: list[str] = []
    # `settle` deletes the hold: if it is gone, the previous attempt was committed, and a retry would count twice.
    once = Once(
        lambda: warnings.extend(settle(spender=spender, held=held, used=used, now=now)),
        lambda: not is_held(spender=spender, held=held),
    )
    await asyncio.shield(asyncio.ensure_future(retry_on_outage(once, in_writer)()))
    for warning in warnings:
        if spender.notify is not None:
            spender.notify(warning)
