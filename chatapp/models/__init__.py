"""The tables, one subject a file."""

from chatapp.models.agents import Agent
from chatapp.models.claims import StoredClaim
from chatapp.models.conversations import Attachment, Branch, Conversation, Message
from chatapp.models.forgetting import (
    ForgetClock,
    ForgetProposal,
    ForgetReceipt,
    PurgeMark,
    ScopeClock,
    Tombstone,
)
from chatapp.models.hooks import DeploymentHook
from chatapp.models.mcp_servers import McpServer
from chatapp.models.memory import (
    Compaction,
    EntryRevision,
    EntrySource,
    MemoryEntry,
    MemoryPause,
    SharedEntry,
)
from chatapp.models.model_configs import ModelConfig
from chatapp.models.offloads import Offload
from chatapp.models.profile import Consolidation, Profile, ProfileVersion
from chatapp.models.removals import Removal
from chatapp.models.requests import RequestText, SentRequest
from chatapp.models.retention import GroupRetention
from chatapp.models.runs import AnswerPiece, Event, Run, Usage
from chatapp.models.search import (
    SearchBlock,
    SearchCodes,
    SearchCursor,
    SearchDocument,
    SearchOwner,
    SearchPosting,
    SearchVectors,
    StaleDay,
)
from chatapp.models.steps import RunStep, ToolCall
from chatapp.models.users import ApiToken, SetupLink, User

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
    "ForgetClock",
    "ForgetProposal",
    "ForgetReceipt",
    "GroupRetention",
    "McpServer",
    "MemoryEntry",
    "MemoryPause",
    "Message",
    "ModelConfig",
    "Offload",
    "Profile",
    "ProfileVersion",
    "PurgeMark",
    "Removal",
    "RequestText",
    "Run",
    "RunStep",
    "ScopeClock",
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
