"""Small handmade exports in the formats of other programs."""

from __future__ import annotations

from typing import Any


def gpt_node(
    node_id: str, parent: str | None, role: str = "", text: str = "", at: float | None = None, **more: Any
) -> dict[str, Any]:
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    message = {
        "id": node_id,
        "author": {"role": role},
        "create_time": at,
        "content": content,
        "metadata": {},
        "recipient": "all",
        **more,
    }
    return {"id": node_id, "parent": parent, "children": [], "message": message if role else None}


def chatgpt(**fields: Any) -> dict[str, Any]:
    """Return an export with an edited question. The second version is shown and has two answers."""
    nodes = [
        gpt_node("root", None),
        gpt_node("hidden", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
        gpt_node("q1", "hidden", "user", "Where do gulls sleep?", 1_700_000_000.0),
        gpt_node("a1", "q1", "assistant", "On roofs.", 1_700_000_010.5, metadata={"model_slug": "gpt-x"}),
        gpt_node("q2", "hidden", "user", "Where do terns sleep?", 1_700_000_020.0),
        gpt_node("t2", "q2", "tool", "lookup", 1_700_000_025.0),
        gpt_node("a2", "t2", "assistant", "On sand.", 1_700_000_030.0),
        gpt_node("a3", "t2", "assistant", "In colonies.", 1_700_000_040.0),
        gpt_node("q3", "a3", "user", "Together?", 1_700_000_050.0),
    ]
    shape = {
        "id": "gpt-1",
        "conversation_id": "gpt-1",
        "title": "Gulls and terns",
        "create_time": 1_700_000_000.0,
        "update_time": 1_700_000_060.0,
        "mapping": {node["id"]: node for node in nodes},
        "current_node": "q3",
        "is_archived": True,
    }
    return shape | fields


def claude(**fields: Any) -> dict[str, Any]:
    shape = {
        "uuid": "claude-1",
        "name": "Knots",
        "created_at": "2024-03-01T09:00:00.000000Z",
        "updated_at": "2024-03-01T09:05:00.000000Z",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "Which knot for a fender?",
                "content": [{"type": "text", "text": "Which knot for a fender?"}],
                "created_at": "2024-03-01T09:00:00Z",
                "attachments": [{"file_name": "list.txt", "extracted_content": "bowline, clove hitch"}],
            },
            {
                "uuid": "m2",
                "sender": "assistant",
                "text": "",
                "content": [
                    {"type": "thinking", "thinking": "Hm."},
                    {"type": "text", "text": "A clove hitch."},
                ],
                "created_at": "2024-03-01T09:01:00Z",
                "files": [{"file_name": "knot.png"}],
            },
        ],
    }
    return shape | fields


def open_webui(**fields: Any) -> dict[str, Any]:
    messages = {
        "u1": {
            "id": "u1",
            "parentId": None,
            "role": "user",
            "content": "Name a star.",
            "timestamp": 1_710_000_000,
        },
        "r1": {
            "id": "r1",
            "parentId": "u1",
            "role": "assistant",
            "content": '<details type="reasoning" done="true">\n> hm\n</details>\nVega.',
            "model": "tiny",
            "timestamp": 1_710_000_005,
        },
        "r2": {
            "id": "r2",
            "parentId": "u1",
            "role": "assistant",
            "content": "Deneb.",
            "timestamp": 1_710_000_009,
        },
    }
    shape = {
        "id": "owui-1",
        "title": "Stars",
        "pinned": True,
        "created_at": 1_710_000_000,
        "updated_at": 1_710_000_009,
        "chat": {"history": {"messages": messages, "currentId": "r1"}},
    }
    return shape | fields


def librechat(**fields: Any) -> dict[str, Any]:
    """Return a recursive export, which nests each answer in its question."""
    answer = {
        "messageId": "l2",
        "parentMessageId": "l1",
        "isCreatedByUser": False,
        "text": "",
        "content": [
            {"type": "think", "think": "…"},
            {"type": "text", "text": {"value": "Rye, water, salt."}},
        ],
        "model": "some-model",
        "createdAt": "2024-05-05T05:05:10Z",
    }
    question = {
        "messageId": "l1",
        "parentMessageId": "00000000-0000-0000-0000-000000000000",
        "isCreatedByUser": True,
        "text": "What goes into the bread?",
        "createdAt": "2024-05-05T05:05:05Z",
        "children": [answer],
    }
    shape = {"conversationId": "libre-1", "title": "Bread", "recursive": True, "messages": [question]}
    return shape | fields
