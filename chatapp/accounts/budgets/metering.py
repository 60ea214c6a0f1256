"""A chat model whose calls are held against budgets before they are made, and settled by what they took."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal

from agents.errors import ModelError
from agents.types import ChatModel, Finished, ModelItem, ModelRequest, TokenUsage
from agents.usage import CallMeter, count_request
from chatapp.accounts.budgets.actions import Amount, Hold, hold, is_held, settle
from chatapp.accounts.budgets.values import NANOS, Spender
from chatapp.operations import clock
from chatapp.operations.database import Once, first_in_writer, in_writer, persistently

EXPECTED_OUTPUT_TOKENS = 1_000
"""What a call holds for its answer, at most: with its whole output limit, one call could lock out all others."""

Price = Callable[[TokenUsage], Decimal | None]


@dataclass(frozen=True, slots=True)
class MeteredModel:
    """Asks `model` on behalf of a spender. `price` returns what usage costs in dollars, None where it is not known."""

    model: ChatModel
    spender: Spender
    price: Price

    @property
    def name(self) -> str:
        return self.model.name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        """Yield what the model says. Raise ModelError, also (budget) where nothing was asked."""
        output_tokens = min(request.max_output_tokens or EXPECTED_OUTPUT_TOKENS, EXPECTED_OUTPUT_TOKENS)
        expected = TokenUsage(count_request(request), output_tokens, exact=False)
        held: Hold | None = await hold_for(self.spender, self._amount(expected))
        meter = CallMeter()
        try:
            # Closed at once, not by the collector: an answer that was stopped would go on costing money.
            async with aclosing(self.model.stream(request)) as items:
                async for item in items:
                    meter.add(item)
                    if isinstance(item, Finished) and held is not None:
                        # Forgotten first: cancelled while it waits, the call must not be settled twice.
                        settled, held = held, None
                        # Before it is handed on: where its reader stops there, an estimate would be counted.
                        await settle_for(self.spender, settled, self._amount(item.usage))
                    yield item
        except ModelError as error:
            meter.fail(error)
            raise
        finally:
            if held is not None:  # it broke off: what it read and wrote; a refused one cost nothing
                used = meter.read(request) or TokenUsage()
                await settle_for(self.spender, held, self._amount(used))

    def _amount(self, usage: TokenUsage) -> Amount:
        cost = self.price(usage)
        return Amount(usage.input_tokens + usage.output_tokens, int((cost or 0) * NANOS))


@asynccontextmanager
async def held_while(spender: Spender, amount: Amount) -> AsyncIterator[None]:
    """Hold the amount for what is done inside, and count it where that succeeds. Raise ModelError (budget)."""
    held = await hold_for(spender, amount)
    used = Amount(0, 0)
    try:
        yield
        used = amount
    finally:
        await settle_for(spender, held, used)


async def hold_for(spender: Spender, amount: Amount) -> Hold:
    """Hold the amount; give it back where the caller is cancelled meanwhile. Raise ModelError (budget)."""
    held = Hold(amount, clock.now())
    # The first word of an answer waits for it.
    write = persistently(Once(hold, is_held), first_in_writer)
    holding = asyncio.ensure_future(write(spender=spender, held=held))
    try:
        await asyncio.shield(holding)
    except asyncio.CancelledError:
        # The thread goes on in any case, and nobody else knows what it held.
        await asyncio.shield(asyncio.ensure_future(_give_back(spender, held, holding)))
        raise
    return held


async def _give_back(spender: Spender, held: Hold, holding: asyncio.Future[None]) -> None:
    await asyncio.wait([holding])
    if holding.exception() is None:
        await settle_for(spender, held, Amount(0, 0))


async def settle_for(spender: Spender, held: Hold, used: Amount) -> None:
    """Settle, also where the caller is cancelled meanwhile."""
    now = clock.now()
    warnings: list[str] = []
    # What settles deletes the hold: where it is gone, the try before was committed, and counting again is twice.
    once = Once(
        lambda: warnings.extend(settle(spender=spender, held=held, used=used, now=now)),
        lambda: not is_held(spender=spender, held=held),
    )
    await asyncio.shield(asyncio.ensure_future(persistently(once, in_writer)()))
    for warning in warnings:
        if spender.notify is not None:
            spender.notify(warning)
