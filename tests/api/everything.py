"""One row of every kind that a path of the API can name."""

from __future__ import annotations

from chatapp.accounts.invitations.models import Invitation
from chatapp.accounts.models import ApiToken, User
from chatapp.agent_presets.models import Agent
from chatapp.compaction.models import Compaction
from chatapp.conversations.models import Folder
from chatapp.features.importing.models import Import
from chatapp.features.prompts.models import Prompt
from chatapp.features.sharing.actions import share_conversation
from chatapp.features.sharing.selectors import token_of
from chatapp.features.webhooks.models import Webhook, WebhookDelivery
from chatapp.files.models import Attachment
from chatapp.forgetting.actions.proposals import record_proposal
from chatapp.forgetting.models import ForgetReceipt
from chatapp.long_term.actions.entries import add_entry
from chatapp.operations import clock
from chatapp.runs.models import Run, ToolCall
from tests.memory_store.rows import new_conversation, say


def one_of_everything(user: User) -> dict[str, str]:
    """Create a conversation of this user, who has a token, and one row of every other kind.

    Return the ids by path parameter.
    """
    conversation = new_conversation(user, "Secret")
    question, answer = say(conversation, "The secret word?", "Xylophone")
    run = Run.objects.create(
        conversation=conversation,
        user=user,
        question=question,
        answer=answer,
        status="complete",
        created_at=clock.now(),
    )
    call = ToolCall.objects.create(
        run=run,
        message=answer,
        step=1,
        ordinal=0,
        call_id="abcdefghi",
        name="look_up",
        state="waiting",
        is_idempotent=True,
        requested_at=clock.now(),
    )
    compaction = Compaction.objects.create(
        conversation=conversation,
        branch=conversation.branch,
        first_position=0,
        last_position=1,
        message_count=2,
        kept_count=0,
        status="done",
        strategy="checkpoint",
        summary="Xylophone",
        created_at=clock.now(),
    )
    file = Attachment.objects.create(
        user=user, name="a.png", sha256="0" * 64, mime_type="image/png", size_bytes=1
    )
    token = ApiToken.objects.filter(user=user).earliest("created_at")
    entry = add_entry(user=user, text="Xylophone", now=clock.now())
    proposal = record_proposal(user=user, items=[{"kind": "message", "id": str(answer.pk)}], now=clock.now())
    receipt = ForgetReceipt.objects.create(user=user, what="message", at=clock.now())
    webhook = Webhook.objects.create(user=user, url="http://hooks.example/", created_at=clock.now())
    delivery = WebhookDelivery.objects.create(
        webhook=webhook,
        conversation=conversation,
        seq=1,
        type="compact",
        next_attempt_at=clock.now(),
        created_at=clock.now(),
    )
    agent = Agent.objects.get_or_create(name="Xylophone", owner=user)[0]
    folder = Folder.objects.get_or_create(user=user, name="Xylophone", defaults={"created_at": clock.now()})[
        0
    ]
    shared, _ = share_conversation(
        user=user, conversation_id=str(conversation.pk), expires_at=None, now=clock.now()
    )
    prompt = Prompt.objects.get_or_create(owner=user, name="xylophone", defaults={"text": "Xylophone"})[0]
    brought = Import.objects.create(
        user=user,
        file_name="a.json",
        size_bytes=1,
        state="done",
        lease_expires_at=clock.now(),
        created_at=clock.now(),
    )
    invitation, _ = Invitation.objects.get_or_create(
        email=f"guest-of-{user.email}",
        defaults={"token_hash": str(user.pk), "created_at": clock.now(), "expires_at": clock.now()},
    )
    return {
        "import_id": str(brought.pk),
        "agent_id": str(agent.pk),
        "folder_id": str(folder.pk),
        "prompt_id": str(prompt.pk),
        "webhook_id": str(webhook.pk),
        "delivery_id": str(delivery.pk),
        "proposal_id": str(proposal.pk),
        "receipt_id": str(receipt.pk),
        "conversation_id": str(conversation.pk),
        "invitation_id": str(invitation.pk),
        "message_id": str(answer.pk),
        "run_id": str(run.pk),
        "compaction_id": str(compaction.pk),
        "file_id": str(file.pk),
        "token_id": str(token.pk),
        "entry_id": str(entry.pk),
        "n": "1",
        "token": token_of(shared.pk),
        "image": str(file.pk),
        "call_id": str(call.call_id),
        "ref": "tool_result-1",
    }
