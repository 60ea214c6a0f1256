"""The tables of all packages, where Django looks for them."""

from chatapp.accounts.models import ApiToken, SetupLink, User
from chatapp.agent_presets.models import Agent, DeploymentHook, McpServer
from chatapp.compaction.models import Compaction
from chatapp.context.models import RequestText, SentRequest
from chatapp.conversations.models import Branch, Conversation, GroupRetention, Message, OwnedConversations
from chatapp.files.models import Attachment, Offload
from chatapp.forgetting.models import (
    ForgetProposal,
    ForgetReceipt,
    Removal,
    Tombstone,
)
from chatapp.long_term.models import (
    Consolidation,
    EntryRevision,
    EntrySource,
    MemoryEntry,
    MemoryPause,
    Profile,
    ProfileVersion,
    SharedEntry,
    StaleDay,
)
from chatapp.operations.models import Fence
from chatapp.providers.models import ModelConfig, Usage
from chatapp.realtime.models import Event
from chatapp.recall.models import (
    SearchBlock,
    SearchCodes,
    SearchCursor,
    SearchDocument,
    SearchOwner,
    SearchPosting,
    SearchVectors,
    StoredClaim,
)
from chatapp.runs.models import AnswerPiece, Run, RunStep, ToolCall

__all__ = [
    "Agent",
    "AnswerPiece",
    "ApiToken",
    "Attachment",
    "Branch",
    "Compaction",
    "Consolidation",
    "Conversation",
    "DeploymentHook",
    "EntryRevision",
    "EntrySource",
    "Event",
    "Fence",
    "ForgetProposal",
    "ForgetReceipt",
    "GroupRetention",
    "McpServer",
    "MemoryEntry",
    "MemoryPause",
    "Message",
    "ModelConfig",
    "Offload",
    "OwnedConversations",
    "Profile",
    "ProfileVersion",
    "Removal",
    "RequestText",
    "Run",
    "RunStep",
    "SearchBlock",
    "SearchCodes",
    "SearchCursor",
    "SearchDocument",
    "SearchOwner",
    "SearchPosting",
    "SearchVectors",
    "SentRequest",
    "SetupLink",
    "SharedEntry",
    "StaleDay",
    "StoredClaim",
    "Tombstone",
    "ToolCall",
    "Usage",
    "User",
]
