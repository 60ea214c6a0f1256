"""Recall of a fact that changed: a request never contains the old statement alone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.recall.actions.indexing import index_conversation
from tests.context_engine.turns_by_hand import ask, import_notes

pytestmark = pytest.mark.django_db

LANGUAGES = {
    "ar": ("أنا أسكن في القاهرة.", "أنا أسكن الآن في الإسكندرية.", "أين أسكن؟"),
    "de": (
        "Meine Schwester wohnt in Köln.",
        "Meine Schwester wohnt jetzt in Brake.",
        "Wo wohnt meine Schwester?",
    ),
    "en": ("My landlord is Mr. Miller.", "My landlord is now Dr. Okafor.", "Who is my landlord?"),
    "es": (
        "Mi color favorito es el rojo.",
        "Mi color favorito ahora es el verde.",
        "¿Cuál es mi color favorito?",
    ),
    "fr": (
        "Mon chef s'appelle Bernard.",
        "Mon chef s'appelle maintenant Dupont.",
        "Comment s'appelle mon chef ?",
    ),
    "hi": ("मैं दिल्ली में रहता हूँ।", "अब मैं मुंबई में रहता हूँ।", "मैं कहाँ रहता हूँ?"),
    "it": ("Abito a Roma.", "Adesso abito a Torino.", "Dove abito?"),
    "ja": ("私は東京に住んでいます。", "私は今、大阪に住んでいます。", "私はどこに住んでいますか？"),
    "ko": ("저는 서울에 살아요.", "저는 이제 부산에 살아요.", "저는 어디에 살아요?"),
    "nl": ("Ik woon in Utrecht.", "Ik woon nu in Groningen.", "Waar woon ik?"),
    "pt": ("Eu moro em Lisboa.", "Agora eu moro no Porto.", "Onde eu moro?"),
    "ru": ("Я живу в Москве.", "Теперь я живу в Казани.", "Где я живу?"),
    "tr": ("Ankara'da yaşıyorum.", "Artık İzmir'de yaşıyorum.", "Nerede yaşıyorum?"),
    "zh": ("我姐姐在银行工作。", "我姐姐现在在医院工作。", "我姐姐在哪里工作？"),
}


def said_long_ago(user: User, text: str) -> None:
    notes = [
        ImportedMessage(role, said, created_at=clock.now() - timedelta(days=300))
        for role, said in (("user", text), ("assistant", "Noted."))
    ]
    index_conversation(import_conversation(user=user, messages=notes, now=clock.now()).pk)


@pytest.mark.mechanism("memory.changing-facts")
@pytest.mark.parametrize("language", LANGUAGES)
def test_an_old_statement_is_never_recalled_without_the_new_one(alice: User, language: str) -> None:
    old, new, question = LANGUAGES[language]
    said_long_ago(alice, old)
    import_notes(alice, *(f"padding{number}" for number in range(40)), new, "Noted.")
    conversation = create_conversation(user=alice, now=clock.now())
    Conversation.objects.filter(pk=conversation.pk).update(context_policy={"recall_tokens": 110})
    recalled = ask(alice, conversation, question).recalled_texts
    assert any(new in text for text in recalled)
    assert all(new in text for text in recalled if old in text)
