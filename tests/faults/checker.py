"""Reads everything back through the public API and compares it with the journal: the contract of docs/operations.md.

Each returned sentence is a fault: something lost, duplicated, out of order, shown but not stored, or badly reported.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import httpx2

from tests.faults.journal import Journal, Sent
from tests.faults.model_faults import MODEL_FAULTS, answer_to, fault_of
from tests.faults.users import User
from tests.reliability.installation import Installation
from tests.reliability.people import ENDED
from tests.reliability.readers import Story
from tests.servers.waiting import PATIENCE_S, wait_for

BEHIND_CHARS = 1_200
"""When a process dies, the stored text may be a second or a kilobyte behind the shown text."""
BROKEN_BY_US = ("interrupted", "stopped")
ALL_READ_S = PATIENCE_S


def check(installation: Installation, users: list[User], journal: Journal) -> list[str]:
    """Return all problems. All processes must be running."""
    problems = list(journal.problems)
    for user in users:
        with installation.client(person=user.person) as client:
            sent = defaultdict[str, list[Sent]](list)
            for one in journal.sent:
                if one.conversation in user.conversations:
                    sent[one.conversation].append(one)
            for conversation in user.conversations:
                checker = _Conversation(client, journal, conversation)
                problems += checker.check(sent[conversation], user.watcher.stories[conversation])
    return problems


class _Conversation:
    def __init__(self, client: httpx2.Client, journal: Journal, conversation: str) -> None:
        self.client, self.journal, self.conversation = client, journal, conversation

    def check(self, sent: list[Sent], story: Story) -> list[str]:
        runs = {one.run_id: self._run(one.run_id) for one in sent if one.run_id}
        shape = self._get(f"conversations/{self.conversation}")
        self._wait_for_reader(story, shape["last_seq"])
        messages = self._messages()
        found = [
            *self._check_messages(sent, messages),
            *self._check_facts(story, set(runs)),
            *(
                problem
                for one in sent
                if one.run_id
                for problem in self._check_answer(one, runs[one.run_id], messages, story)
            ),
        ]
        return [f"{self.conversation}: {problem}" for problem in found]

    # --- reading

    def _get(self, path: str, **params: Any) -> dict[str, Any]:
        answer = self.client.get(f"/api/v1/{path}", params=params)
        assert answer.status_code == 200, f"GET {path}: {answer.status_code} {answer.text[:300]}"
        self.journal.scan(answer.text, f"GET {path}")
        return dict(answer.json())

    def _run(self, run_id: str) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            run = self._get(f"runs/{run_id}")
            return run if run["status"] in ENDED else None

        return wait_for(ended, what=f"run {run_id} ends") or {}

    def _messages(self) -> list[dict[str, Any]]:
        pages: list[dict[str, Any]] = []
        before: dict[str, str] = {}
        while True:
            page = self._get(f"conversations/{self.conversation}/messages", limit=100, **before)
            pages = [*page["items"], *pages]
            if not page["next_cursor"]:
                return pages
            before = {"before": page["next_cursor"]}

    def _wait_for_reader(self, story: Story, last_seq: int) -> None:
        try:
            wait_for(lambda: story.last_seq >= last_seq, what="the reader", timeout_s=ALL_READ_S)
        except AssertionError:
            self.journal.complain(f"{self.conversation}: a reader got {story.last_seq} of {last_seq} facts")

    # --- comparing

    def _check_messages(self, sent: list[Sent], messages: list[dict[str, Any]]) -> Iterator[str]:
        positions = [message["position"] for message in messages]
        if positions != list(range(len(messages))):
            yield f"positions have gaps: {positions}"
        stored = [message for message in messages if message["role"] == "user"]
        texts = Counter(message["content"] for message in stored)
        for one in sent:
            if texts[one.content] > 1:
                yield f"{one.key} is stored {texts[one.content]} times"
            if one.is_acknowledged and not texts[one.content]:
                yield f"{one.key} was accepted and is lost"
            elif one.message_id and not any(
                (message["id"], message["content"]) == (one.message_id, one.content) for message in stored
            ):
                yield f"{one.key} is stored under another id than was acknowledged"
        for content in texts.keys() - {one.content for one in sent}:
            yield f"nobody sent {content!r}"
        order = [one.content for one in sent if texts[one.content]]
        if [message["content"] for message in stored] != order:
            yield "the questions are out of order"
        if len(messages) != 2 * len(stored):
            yield f"{len(stored)} questions, {len(messages) - len(stored)} answers"

    def _check_facts(self, story: Story, run_ids: set[str]) -> Iterator[str]:
        ends = Counter(fact["run_id"] for fact in story.facts if fact["type"] == "run.finished")
        for run_id in run_ids:
            if ends[run_id] != 1:
                yield f"run {run_id} has {ends[run_id]} run.finished"
            elif story.types(run_id)[-1] != "run.finished":
                yield f"run {run_id} told more after its end: {story.types(run_id)}"

    def _check_answer(
        self, one: Sent, run: dict[str, Any], messages: list[dict[str, Any]], story: Story
    ) -> Iterator[str]:
        answer = next((message for message in messages if message["id"] == run["message_id"]), None)
        if answer is None:
            yield f"the answer to {one.key} is lost"
            return
        status, text, whole = answer["status"], _text(answer), answer_to(one.content)
        fault = MODEL_FAULTS[name := fault_of(one.content)]
        if status not in (*fault.statuses, *BROKEN_BY_US):
            yield f"{one.key}: {name} ended as {status}: {run['error']}"
        if status == "complete" and text != whole:
            yield f"{one.key}: {name} is called complete with {len(text)} of {len(whole)} characters"
        if status != "complete" and not _is_part(text, whole, name):
            yield f"{one.key}: {name}: what is stored was not said: {text[-200:]!r}"
        yield from self._check_shown(one, answer, text, story)
        yield from self._check_error(one, run, status, fault.category)

    def _check_shown(self, one: Sent, answer: dict[str, Any], text: str, story: Story) -> Iterator[str]:
        shown, streamed = story.texts.get(answer["id"], ""), story.streamed.get(answer["id"], "")
        if _plain(shown) != text:
            yield f"{one.key}: {len(_plain(shown))} characters are shown, {len(text)} are stored"
        if text.startswith(streamed):
            return
        if not streamed.startswith(text):
            yield f"{one.key}: other words were shown than are stored"
        elif answer["status"] != "interrupted" or len(streamed) - len(text) > BEHIND_CHARS:
            yield f"{one.key}: {len(streamed)} characters had been shown, {len(text)} are stored"

    def _check_error(self, one: Sent, run: dict[str, Any], status: str, category: str) -> Iterator[str]:
        error = run["error"]
        if status in ("complete", "stopped"):
            return
        if not error:
            yield f"{one.key}: {status} without a word"
            return
        self.journal.check_sentence(error["message"], f"run {run['id']}")
        if error["category"] == "internal":
            yield f"{one.key}: an error of our own: {error}"
        elif status not in BROKEN_BY_US and error["category"] != category:
            yield f"{one.key}: told as {error['category']}, but it was {category}"


def _text(message: dict[str, Any]) -> str:
    return _plain(message["content"])


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if part.get("type") == "text")


def _is_part(text: str, whole: str, fault: str) -> bool:
    if fault == "endless":
        return text.startswith(whole) or whole.startswith(text)
    if fault == "lost-event":
        said = iter(whole.split())
        return all(word in said for word in text.split())  # Words may be missing, but none is new or moved.
    return whole.startswith(text)
