from datetime import UTC, timedelta

import pytest

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Conversation, Folder
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.analysis import questions
from chatapp.recall.selectors.user_index import SearchFilter, open_index
from tests.memory_store.rows import NOW, new_conversation, say
from tests.memory_store.test_memory_api import Clients

pytestmark = pytest.mark.django_db


@pytest.fixture
def places(alice: User) -> list[str]:
    """Store three moves, a month apart, the last two in a second conversation. Return the ids of both."""
    first, second = new_conversation(alice), new_conversation(alice)
    say(first, "I moved to Oslo.", at=NOW - timedelta(days=60))
    say(second, "I moved to Rome.", at=NOW - timedelta(days=30))
    say(second, "I moved to Lima.", at=NOW)
    return [str(first.pk), str(second.pk)]


@pytest.mark.parametrize(
    ("query", "towns"),
    [
        ({}, {"Oslo", "Rome", "Lima"}),
        ({"after": "2026-10-22"}, {"Rome", "Lima"}),
        ({"before": "2026-10-22"}, {"Oslo"}),
        ({"after": "2026-10-22", "before": "2026-10-23"}, {"Rome"}),
        ({"as_of": "2026-10-22"}, {"Oslo", "Rome"}),
        ({"as_of": "2026-10-22T19:59:59Z"}, {"Oslo"}),
        ({"as_of": "2026-10-22T20:00:00Z"}, {"Oslo", "Rome"}),
        ({"after": "2026-10-22T22:00:01+02:00"}, {"Lima"}),
        ({"before": "2000-01-01"}, set()),
    ],
)
def test_search_results_are_filtered_by_time(
    alice: User, api_client: Clients, places: list[str], query: dict[str, str], towns: set[str]
):
    found = api_client(alice).get("/api/v1/memory/search", {"q": "moved", **query}).json()["items"]
    assert {item["text"].split()[-1].rstrip(".") for item in found} == towns


def test_a_search_can_be_limited_to_one_conversation(
    alice: User, charlie: User, api_client: Clients, places: list[str]
):
    asked = {"q": "Where did I move?", "conversation_id": places[1]}
    found = api_client(alice).get("/api/v1/memory/search", asked).json()["items"]
    assert {item["source"]["conversation_id"] for item in found} == {places[1]}
    assert len(found) == 2
    assert api_client(charlie).get("/api/v1/memory/search", asked).status_code == 404


def test_yesterday_is_the_day_before_as_of(alice: User, api_client: Clients, places: list[str]):
    asked = {"q": "Where did I move yesterday?", "as_of": "2026-10-23"}
    found = api_client(alice).get("/api/v1/memory/search", asked).json()["items"]
    assert found[0]["text"] == "I moved to Rome."


@pytest.mark.parametrize(
    "query", ["after=soon", "before=2026-13-01", "as_of=9999-12-31", "after=0001-01-01T00:00%2B05:00"]
)
def test_invalid_dates_are_refused(alice: User, api_client: Clients, query: str):
    assert api_client(alice).get(f"/api/v1/memory/search?q=x&{query}").status_code == 422


def test_documents_indexed_during_a_search_reveal_no_other_conversation(alice: User):
    """An open index numbers unindexed turns itself. A worker may since have given these ordinals to other turns."""
    private, here = new_conversation(alice), new_conversation(alice)
    say(here, "The harbour is quiet.", at=NOW)
    index_conversation(here.pk)
    say(here, "The ferry is late.", at=NOW)
    say(private, "My bank card has the number 9152.", at=NOW)
    Conversation.objects.filter(pk=here.pk).update(last_activity_at=NOW - timedelta(days=1))
    index = open_index(alice.pk)
    index_conversation(here.pk)
    only = SearchFilter(conversation_id=here.pk)
    ranking = index.rank(questions.read("bank card number", NOW.date()), 5, zone=UTC, only=only)
    found = index.read(ranking.ordinals, ranking.scores)
    assert {one.conversation_id for one in found} <= {here.pk}


def test_a_search_can_be_limited_by_folder_agent_and_role(
    alice: User, charlie: User, api_client: Clients, places: list[str]
):
    folder = Folder.objects.create(user=alice, name="Moves", created_at=NOW)
    guide = Agent.objects.create(name="Guide")
    Conversation.objects.filter(pk=places[0]).update(folder=folder, agent=guide)
    client = api_client(alice)

    def found(**asked: str) -> list[str]:
        items = client.get("/api/v1/memory/search", {"q": "moved", **asked}).json()["items"]
        return sorted(item["text"].split()[-1] for item in items)

    for _ in ("from what is not indexed yet", "from the index"):
        assert found(folder=str(folder.pk)) == found(agent="Guide") == ["Oslo."]
        assert found(agent="default") == ["Lima.", "Rome."]
        assert found(role="user") == ["Oslo.", "Rome."]
        assert found(role="assistant") == ["Lima."]
        assert found(role="assistant", folder=str(folder.pk)) == []
        for place in places:
            index_conversation(Conversation.objects.get(pk=place).pk)
    refused = {"q": "moved", "folder": str(folder.pk)}
    assert api_client(charlie).get("/api/v1/memory/search", refused).status_code == 404
    assert client.get("/api/v1/memory/search", {"q": "moved", "agent": "Nobody"}).status_code == 404
    assert client.get("/api/v1/memory/search", {"q": "moved", "role": "tool"}).status_code == 422


def test_a_hit_is_shown_with_its_sentence_and_the_title_of_its_chat(alice: User, api_client: Clients):
    chat = new_conversation(alice, "Moving house")
    say(chat, "The harbour is quiet. Last year we moved to Oslo with two cats. It rains.", at=NOW)
    item = api_client(alice).get("/api/v1/memory/search", {"q": "Where did we move?"}).json()["items"][0]
    assert "".join(span["text"] for span in item["excerpt"]) == "Last year we moved to Oslo with two cats."
    assert [span["text"] for span in item["excerpt"] if span["is_hit"]] == ["moved"]
    assert item["title"] == "Moving house"
