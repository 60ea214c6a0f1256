"""Has the fast model write a title. If that fails, the conversation stays named after its first message."""

from __future__ import annotations

import logging
from uuid import UUID

from agents.background.calls import BackgroundCaller
from agents.background.titles import read_title, title_request
from agents.errors import ModelError
from chatapp.accounts.budgets.selectors import spender_of
from chatapp.features.titles.actions import claim_title, end_title, store_title
from chatapp.features.titles.selectors import Untitled, untitled
from chatapp.operations import clock
from chatapp.operations.database.threads import OUTAGE_ERRORS
from chatapp.operations.errors import NotFound, ReadForgotten
from chatapp.providers.actions import record_made_calls
from chatapp.providers.chat_models import ask_in_thread, chat_model_for
from chatapp.providers.usage import priced_call

log = logging.getLogger(__name__)

TIMEOUT_S = 60.0


def write_title(conversation_id: UUID) -> None:
    """Have a model write the title, in the worker. Safe to call twice: at most one of the calls reaches the model."""
    if not claim_title(conversation_id=conversation_id, now=clock.now()):
        return
    try:
        work = untitled(conversation_id)
        if work is not None:
            _name(work)
    except ModelError as error:
        log.warning("No title for %s: %s (%s)", conversation_id, error.category, error.detail)
    except (NotFound, ReadForgotten) as error:
        log.info("No title for %s: %s", conversation_id, error.message)
    except OUTAGE_ERRORS:
        # The job stays claimed: the sweep tries again after its lease.
        raise
    except Exception:
        log.exception("The title of %s could not be written.", conversation_id)
    # End the job after a failure, too: the first message is a good enough title, and a second call would cost again.
    end_title(conversation_id=conversation_id)


def _name(work: Untitled) -> None:
    spender = spender_of(work.conversation.owner_id)
    asking = BackgroundCaller(chat_model_for(work.model, spender), TIMEOUT_S, retries=False)
    try:
        answer = ask_in_thread(asking.ask(title_request(work.question, work.answer)))
    finally:
        # A failed call has to be paid for, too.
        calls = [priced_call(work.model, usage, "title") for usage in asking.usages]
        owner_id, home_id = work.conversation.owner_id, work.conversation.pk
        record_made_calls(user_id=owner_id, conversation_id=home_id, calls=calls)
    title = read_title(answer)
    if title:
        store_title(
            conversation=work.conversation,
            title=title,
            last_position=work.last_position,
            forgotten_count=work.forgotten_count,
            now=clock.now(),
        )
    else:
        log.warning("The model answered with no title for %s.", work.conversation.pk)
