"""Blank what events and stored requests copied of texts, by the keys of the texts.

Events and requests that refer to texts need none of this: what is left of it goes as they come to do so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any
from uuid import UUID

from django.db.models import Q

from agents.manifest import OwnText, read_manifest
from chatapp.context.models import RequestText, SentRequest
from chatapp.context.selectors import strings_in
from chatapp.realtime.models import Event

NOTHING_SAID = ("system", "tools")
"""The sources of request texts that hold nothing that was said."""
TELLING = ("tool", "hook", "plan", "recall")
EMPTY = {"arguments": "{}", "preview": "", "text": "", "steps": [], "message": ""}


def blank_events(
    conversation_ids: Collection[UUID],
    run_ids: Collection[UUID],
    emptied: Collection[UUID],
    source_ids: Collection[UUID],
    is_copy: Callable[[str], bool],
) -> int:
    """Of runs that read something, of which some are `emptied`, and of entries. Return how many events."""
    ids = {str(one) for one in source_ids}
    rows = Event.objects.filter(conversation__in=conversation_ids)
    about = Q(run__in=run_ids, type__in=TELLING) | Q(payload__entry_id__in=list(ids))
    changed = []
    for row in rows.filter(about).iterator(chunk_size=500):
        is_gone = row.run_id in emptied or row.payload.get("entry_id") in ids
        payload = _blanked(row.payload, ids, is_gone or is_copy(_text_of(row.payload)))
        if payload != row.payload:
            row.payload = payload
            changed.append(row)
    Event.objects.bulk_update(changed, ["payload"], batch_size=200)
    return len(changed)


def _blanked(payload: dict[str, Any], ids: set[str], is_copy: bool) -> dict[str, Any]:
    if payload["type"] == "recall":
        left = [item for item in payload["items"] if ids.isdisjoint(map(str, item["source"].values()))]
        return {**payload, "items": left}
    if not is_copy:
        return payload
    return {name: EMPTY.get(name, value) for name, value in payload.items() if name != "offload_ref"}


def _text_of(value: Any) -> str:
    return "\n".join(strings_in(value))


def delete_request_texts(conversation_ids: Iterable[UUID]) -> int:
    """All that requests of these conversations hold of what was said. Return how many texts."""
    texts = RequestText.objects.filter(conversation__in=list(conversation_ids))
    return texts.exclude(source__in=NOTHING_SAID).delete()[0]


def delete_texts_of_runs(run_ids: Collection[UUID]) -> int:
    """What the requests of these runs hold of their own. Return how many texts."""
    count = 0
    requests = SentRequest.objects.filter(run__in=run_ids).values_list("run__conversation", "manifest")
    hashes: dict[UUID, set[str]] = {}
    for home, manifest in requests:
        own = [piece for piece in read_manifest(manifest).pieces if isinstance(piece, OwnText)]
        hashes.setdefault(home, set()).update(piece.text_sha256 for piece in own)
    for home, some in hashes.items():
        texts = RequestText.objects.filter(conversation=home, sha256__in=some)
        count += texts.exclude(source__in=NOTHING_SAID).delete()[0]
    return count


def delete_sent_profiles(user_ids: Collection[UUID]) -> int:
    """What requests hold of profiles that have lost a line. Return how many texts."""
    return RequestText.objects.filter(conversation__user__in=user_ids, source="profile").delete()[0]
