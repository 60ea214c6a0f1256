"""Loads and fits the request for a question in a conversation, with the rules in force."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.conf import settings

from agents.prompts import system_prompt
from agents.requests.context import AssembledContext, ContextInputs
from agents.tools.protocol import Tool
from chatapp.accounts.budgets.selectors import spender_of
from chatapp.accounts.budgets.values import Spender
from chatapp.context.loading import DbMemory, load_history
from chatapp.context.policies import ContextRules, agent_of, rules_for
from chatapp.context.tools.registry import tools_for
from chatapp.conversations.models import Branch, Conversation, Folder
from chatapp.files.selectors import files_of_folder
from chatapp.long_term.selectors.profile import profile_text
from chatapp.providers.models import ModelConfig
from memory.errors import ContextError
from memory.long_term.profile import profile_message
from memory.tokens import text_message
from memory.types import Message
from memory.window.loading import LoadLimits

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedContext:
    """The inputs of a context, and the rows and rules they were made from."""

    conversation: Conversation
    branch: Branch
    config: ModelConfig
    rules: ContextRules
    history: DbMemory
    inputs: ContextInputs
    spender: Spender
    time_limit_s: float
    """The shorter of the agent's and the deployment's limits for one answer."""
    tools: tuple[Tool, ...] = ()
    turn_position: int | None = None
    """Position of the question that began this turn; None if it is not stored or not asked yet."""

    @property
    def user_id(self) -> UUID:
        return self.conversation.owner_id

    def with_notes(self, notes: Sequence[Message]) -> LoadedContext:
        """Return the context with the notes that hooks add to this one request."""
        return replace(self, inputs=replace(self.inputs, notes=tuple(notes)))

    def assemble(self) -> AssembledContext:
        """Return the request that fits, without the notes of hooks if the question would be too large with them.

        Raise memory.errors.ContextError if the question or the system prompt is too large.
        """
        try:
            return AssembledContext(self.inputs, self.inputs.fit())
        except ContextError:
            if not self.inputs.notes:
                raise
            log.warning(
                "The notes of hooks do not fit into the request of conversation %s and were left out.",
                self.conversation.pk,
            )
            return self.with_notes(()).assemble()


def folder_prompt(folder: Folder, *, has_tools: bool) -> str:
    """Return the instructions of the folder and, if tools can read them, the names of its files."""
    names = [f"{file.pk}: {file.name}" for file in files_of_folder(folder)] if has_tools else []
    files = "Files of this folder, for files_read:\n" + "\n".join(names) if names else ""
    return "\n\n".join(filter(None, (folder.instructions, files)))


def load_context(
    *,
    conversation: Conversation,
    branch: Branch,
    before_position: int,
    question: Message,
    config: ModelConfig,
    now: datetime,
    rules: ContextRules | None = None,
    turn_position: int | None = None,
) -> LoadedContext:
    """Return the context of a question, read in one pass over the database."""
    rules = rules or rules_for(config, conversation)
    history = load_history(
        branch,
        before_position=before_position,
        budget_tokens=rules.budget.input_tokens,
        limits=LoadLimits.of(rules.policy, rules.budget, rules.calibration),
    )
    today = now.astimezone(conversation.user.zone).date()
    agent = agent_of(conversation)
    tools = tools_for(conversation)
    prompt = (agent.system_prompt.strip() if agent else "") or config.system_prompt
    # A shared memory serves other users, too, so personal instructions are left out.
    own = conversation.user.instructions if conversation.scope_id is None else ""
    in_folder = folder_prompt(conversation.folder, has_tools=bool(tools)) if conversation.folder else ""
    more = "\n\n".join(filter(None, (own, in_folder)))
    system = system_prompt(prompt, today, has_tools=bool(tools), more=more)
    inputs = ContextInputs(
        system=text_message("system", system),
        checkpoint=history.checkpoint,
        messages=history.get_messages(),
        question=question,
        policy=rules.policy,
        budget=rules.budget,
        calibration=rules.calibration,
        left_out=history.left_out,
        profile=profile_message(profile_text(conversation), rules.policy.profile_limit(rules.budget)),
        tools=tuple(tool.spec for tool in tools),
        temperature=agent.temperature if agent else None,
    )
    spender = spender_of(conversation.owner_id)
    # Read it here: finding the agent needs the database, which the event loop must not query.
    limit_s = float(settings.ANSWER_TIME_LIMIT_S)
    if agent and agent.timeout_s:
        limit_s = min(agent.timeout_s, limit_s)
    return LoadedContext(
        conversation, branch, config, rules, history, inputs, spender, limit_s, tools, turn_position
    )
