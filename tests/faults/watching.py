"""A user's socket, reconnected whenever it is lost. It records the story of each of the user's chats."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from itertools import count

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from tests.faults.journal import Journal
from tests.reliability.installation import Installation
from tests.reliability.readers import ASK_AGAIN_S, Story

PAUSE_S = 0.2


class Watcher:
    """`stories` holds what was shown of each conversation. Call `watch` for a new one."""

    def __init__(self, installation: Installation, person: str, journal: Journal) -> None:
        self.installation, self.person, self.journal = installation, person, journal
        self.stories: dict[str, Story] = {}
        self.has_stopped = False
        self._socket: ClientConnection | None = None
        self._asked_at = 0.0
        self._turns = count(hash(person))
        self._subscribed: set[str] = set()
        self._sending = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def watch(self, conversation: str) -> None:
        self.stories[conversation] = Story()
        self._tell_of(conversation)

    def stop(self) -> None:
        self.has_stopped = True
        if self._socket is not None:
            self._socket.close()
        self._thread.join(30)

    def _run(self) -> None:
        while not self.has_stopped:
            with suppress(OSError, WebSocketException, TimeoutError):
                self._read()
            self._socket = None
            time.sleep(PAUSE_S)

    def _read(self) -> None:
        webs = self.installation.webs
        url = webs[next(self._turns) % len(webs)].ws_url
        headers = {"Authorization": f"Bearer {self.installation.tokens[self.person]}"}
        with connect(url, additional_headers=headers, max_size=None, open_timeout=20) as socket:
            self.journal.count("sockets opened")
            with self._sending:
                self._socket, self._subscribed = socket, set()
            for conversation in list(self.stories):
                self._tell_of(conversation)
            for raw in socket:
                self._take(str(raw))

    def _take(self, raw: str) -> None:
        self.journal.scan(raw, "a frame of a socket")
        event = json.loads(raw)
        if event["type"] == "error":
            self.journal.check_sentence(event.get("message"), "a frame of a socket")
            return
        story = self.stories.get(event.get("conversation_id", ""))
        if story is None:
            return
        if event["type"] == "reset":
            self.journal.complain(f"{event['conversation_id']}: its log ends before fact {story.last_seq}")
            return
        try:
            incomplete = story.take(event)
        except AssertionError as gap:
            self.journal.complain(f"{event['conversation_id']}: {str(gap)[:300]}")
            return
        if incomplete is not None and time.monotonic() - self._asked_at > ASK_AGAIN_S:
            self._asked_at = time.monotonic()
            length = len(story.texts.get(incomplete, ""))
            self._tell({"type": "message.sync", "message_id": incomplete, "length": length})

    def _tell_of(self, conversation: str) -> None:
        """Subscribe once per connection, because a second subscription would repeat all events."""
        with self._sending:
            if self._socket is None or conversation in self._subscribed:
                return
            self._subscribed.add(conversation)
        after = self.stories[conversation].last_seq
        self._tell({"type": "subscribe", "conversation_id": conversation, "after_seq": after})

    def _tell(self, frame: dict[str, object]) -> None:
        socket = self._socket
        if socket is not None:
            with suppress(OSError, WebSocketException), self._sending:
                socket.send(json.dumps(frame))
