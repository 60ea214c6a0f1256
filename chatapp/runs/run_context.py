"""Loads what a run begins with: who answers, in which mode, and what of the conversation is in its context; and the
same for the end of its turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from agents import events
from agents.context import AssembledContext
from agents.plan.choosing import RunMode
from agents.ports import CallKey, EarlierCall
from agents.prompts import CONTINUE_PROMPT
from chatapp.context.assembly import LoadedContext, load_context
from chatapp.context.recalled import Recalled, recall_turns
from chatapp.conversations.message_values import message_value
from chatapp.operations import clock
from chatapp.operations.errors import NotFound
from chatapp.operations.forgetting_counts import read_forgetting_count
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import may_use, model_of
from chatapp.runs.actions.claims import ClaimedRun
from chatapp.runs.models import Run
from chatapp.runs.plans import PlanSetup, mode_of, set_up_plan
from chatapp.runs.selectors import earlier_calls
from memory.errors import PolicyError
from memory.tokens import text_message
from memory.types import Message

# A conversation without a user is being deleted: no process answers its runs any more.
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
    """What a run needs to begin. `refusal` says why it cannot, before any call is made."""

    conversation_id: str
    model_name: str
    context: LoadedContext | None
    refusal: events.RunError | None = None
    earlier: Mapping[CallKey, EarlierCall] = field(default_factory=dict)
    """Tool calls that earlier attempts at this question may have made."""
    plan: PlanSetup | None = None
    assembled: tuple[AssembledContext, Recalled] | None = None
    """The first request, where nothing stands between loading and asking."""
    forgotten_count: int = 0
    """How often its user had something forgotten before any of this was read."""

    @property
    def mode(self) -> RunMode:
        return "react" if self.plan is None else "plan"


def describe_run(run_id: UUID) -> PreparedRun:
    """Return what a run needs to begin. Raise Run.DoesNotExist when the conversation was deleted meanwhile."""
    run = _RUNS.get(pk=run_id)
    conversation_id = str(run.conversation_id)
    # Before all else: the claim compares it, and finds what was forgotten while the rest was read.
    forgotten_count = read_forgetting_count(run.conversation.forgetting_keys)
    return replace(_prepare(run, conversation_id), forgotten_count=forgotten_count)


def describe_new(run: Run) -> tuple[str, str] | None:
    """Return (name of the model, mode) of a run that is being stored; None where there is no model."""
    try:
        return _config_of(run).name, mode_of(run)
    except NotFound:
        return None


def prepare_claimed(claimed: ClaimedRun) -> PreparedRun:
    """Return what a run needs that was claimed as it was stored, from the rows in hand and what was said before.

    Its question is new: no earlier attempt has called a tool for it.
    """
    run = claimed.run
    prepared = _prepare(run, str(run.conversation_id), is_new=True)
    return replace(prepared, forgotten_count=claimed.forgotten_count)


def _prepare(run: Run, conversation_id: str, is_new: bool = False) -> PreparedRun:
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
    """Return the context of a run. A continued answer is history, followed by the prompt to go on."""
    if run.continues is not None or run.question is None:
        # What was sent since is no history: the run takes it in by itself.
        before = run.continues.position + 1 if run.continues else run.answer.position
        question = text_message("user", CONTINUE_PROMPT, kind="question")
    else:
        question, before = _question_value(run), run.question.position
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
    """Return the context right behind the answer of a run that has ended, whatever was asked since; None where its
    conversation was deleted. Raise NotFound, PolicyError."""
    run = _RUNS.filter(pk=run_id).first()
    if run is None:
        return None
    nothing = text_message("user", "", kind="question")
    return _load_turn(run, _config_of(run), nothing, run.answer.position + 1)


def _config_of(run: Run) -> ModelConfig:
    """Return the model that answers. Raise NotFound."""
    # Asked at each answer: the models of a group may have changed since this one was chosen.
    is_usable = run.model is not None and may_use(run.model, run.conversation.owner_id)
    return run.model if run.model and is_usable else model_of(run.conversation)


def _question_value(run: Run) -> Message:
    assert run.question is not None
    # Pinned while it is asked: whatever leaves the context, the question stays.
    return replace(message_value(run.question), kind="question", pinned=True)


def assemble_and_recall(loaded: LoadedContext, run_id: UUID) -> tuple[AssembledContext, Recalled]:
    """Return the context with what was recalled for it, and that by itself. Raise ContextError.

    What was recalled is not noted yet: until `record_asked` does, forgetting ends the run.
    """
    context = loaded.assemble()
    recalled = recall_turns(loaded, context, clock.now(), asked_by=f"run {run_id}")
    return recalled.place_in(context), recalled
