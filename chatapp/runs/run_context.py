"""Loads what a run needs to start: the model, the mode and the context of the conversation. Loads the same for the end
of its turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from agents import events
from agents.plan.choosing import RunMode
from agents.ports import CallKey
from agents.prompts import CONTINUE_PROMPT
from agents.requests.context import AssembledContext
from chatapp.context.assembly import LoadedContext, load_context
from chatapp.context.recalled import Recalled, recall_turns
from chatapp.conversations.message_values import message_value
from chatapp.operations import clock
from chatapp.operations.database.forgetting_counts import read_forgetting_count
from chatapp.operations.errors import NotFound
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import may_use, model_of
from chatapp.runs.actions.claims import ClaimedRun
from chatapp.runs.models import Run
from chatapp.runs.plans import PlanSetup, mode_of, set_up_plan
from chatapp.runs.selectors import earlier_calls
from memory.errors import PolicyError
from memory.tokens import text_message
from memory.types import Message

# A conversation without a user is being deleted, so no process answers its runs.
_RUNS = Run.objects.filter(conversation__user__isnull=False).select_related(
    "conversation__user",
    "conversation__model__fast_model",
    "conversation__agent__model__fast_model",
    "question",
    "answer__branch",
    "model__fast_model",
)


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """Everything a run needs to start. `refusal` says why it cannot start; then no model is called."""

    conversation_id: str
    model_name: str
    context: LoadedContext | None
    refusal: events.RunError | None = None
    earlier: Mapping[CallKey, str | None] = field(default_factory=dict)
    """Tool calls that earlier attempts at this question have begun and that must not be repeated."""
    plan: PlanSetup | None = None
    assembled: tuple[AssembledContext, Recalled] | None = None
    """The first request, if no hook and no plan comes before it."""
    forgotten_count: int = 0
    """The forgetting count as it was before any of this was read."""

    @property
    def mode(self) -> RunMode:
        return "react" if self.plan is None else "plan"


def describe_run(run_id: UUID) -> PreparedRun:
    """Load what a run needs to start. Raise Run.DoesNotExist if the conversation was deleted meanwhile."""
    run = _RUNS.get(pk=run_id)
    # Read it first: the claim compares it to detect anything forgotten while the rest was read.
    forgotten_count = read_forgetting_count(run.conversation.forgetting_keys)
    return replace(_prepare(run), forgotten_count=forgotten_count)


def describe_new(run: Run) -> tuple[str, str] | None:
    """Return (model name, mode) of a run that is being stored; None if there is no model."""
    try:
        return _config_of(run).name, mode_of(run)
    except NotFound:
        return None


def prepare_claimed(claimed: ClaimedRun) -> PreparedRun:
    """Prepare a run that was claimed when it was stored, from its loaded rows and the earlier messages.

    Its question is new, so no earlier attempt has called a tool for it.
    """
    run = claimed.run
    prepared = _prepare(run, is_new=True)
    return replace(prepared, forgotten_count=claimed.forgotten_count)


def _prepare(run: Run, is_new: bool = False) -> PreparedRun:
    conversation_id = str(run.conversation_id)
    try:
        config = _config_of(run)
        loaded = _load(run, config)
        plan = set_up_plan(run, loaded) if mode_of(run) == "plan" else None
        earlier = {} if is_new else earlier_calls(run)
        return PreparedRun(conversation_id, config.name, loaded, earlier=earlier, plan=plan)
    except NotFound as error:
        return PreparedRun(
            conversation_id, "", None, events.RunError(category="no_model", message=error.message)
        )
    except PolicyError as error:
        sentence = f"The context settings of this conversation are not valid: {error}"
        return PreparedRun(conversation_id, "", None, events.RunError(category="settings", message=sentence))


def _load(run: Run, config: ModelConfig) -> LoadedContext:
    """Load the context. A continued answer becomes history, and the prompt to go on becomes the question."""
    if run.continues is not None or run.question is None:
        # Messages sent later are not history: the run takes them in from its inbox.
        before = run.continues.position + 1 if run.continues else run.answer.position
        question = text_message("user", CONTINUE_PROMPT, kind="question")
    else:
        # Pinned, so that the question stays in the context whatever else is cut.
        question = replace(message_value(run.question), kind="question", pinned=True)
        before = run.question.position
    return _load_turn(run, config, question, before)


def _load_turn(run: Run, config: ModelConfig, question: Message, before_position: int) -> LoadedContext:
    return load_context(
        conversation=run.conversation,
        branch=run.answer.branch,
        before_position=before_position,
        question=question,
        config=config,
        now=clock.now(),
        turn_position=run.question.position if run.question else None,
    )


def load_turn_end(run_id: UUID) -> LoadedContext | None:
    """Return the context right after the answer of a run that has ended, without later messages; None if the
    conversation was deleted. Raise NotFound, PolicyError."""
    run = _RUNS.filter(pk=run_id).first()
    if run is None:
        return None
    nothing = text_message("user", "", kind="question")
    return _load_turn(run, _config_of(run), nothing, run.answer.position + 1)


def _config_of(run: Run) -> ModelConfig:
    """Return the model that answers. Raise NotFound."""
    # Check for every answer: the models allowed for a group may have changed since this one was chosen.
    is_usable = run.model is not None and may_use(run.model, run.conversation.owner_id)
    return run.model if run.model and is_usable else model_of(run.conversation)


def assemble_and_recall(loaded: LoadedContext, run_id: UUID) -> tuple[AssembledContext, Recalled]:
    """Return the context with the recalled turns placed in it, and the recall result. Raise ContextError.

    The recalled sources are not recorded yet: until `record_first_request` stores them, any forgetting ends the run.
    """
    context = loaded.assemble()
    recalled = recall_turns(loaded, context, clock.now(), asked_by=f"run {run_id}")
    return recalled.place_in(context), recalled
