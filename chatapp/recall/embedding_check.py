"""Estimates the cost of embeddings, and finds languages that the embedding model does not know. For the doctor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Sum

from agents.arrays import np
from agents.chat_models.openai_client import embed_texts
from agents.types import ModelEndpoint
from chatapp.recall.models import SearchOwner

TOKENS_PER_WORD = 3
"""An indexed word is about one and a half tokens, and each text is embedded twice: whole and by sentence."""
VECTORS_EACH = 3
BYTES_A_NUMBER = 2

# For each language: a question, its answer, and a sentence about something else.
PROBES = {
    "English": (
        "Where does my sister live?",
        "Anna, my sister, has a flat in Bern.",
        "The soup needs more salt.",
    ),
    "German": (
        "Wo wohnt meine Schwester?",
        "Anna, meine Schwester, hat ein Zimmer in Bern.",
        "In der Suppe fehlt Salz.",
    ),
    "French": (
        "Où habite ma sœur ?",
        "Anna, ma sœur, a un appartement à Berne.",
        "Il manque du sel dans la soupe.",
    ),
    "Spanish": (
        "¿Dónde vive mi hermana?",
        "Anna, mi hermana, tiene un piso en Berna.",
        "A la sopa le falta sal.",
    ),
    "Italian": (
        "Dove abita mia sorella?",
        "Anna, mia sorella, ha una casa a Berna.",
        "Nella zuppa manca il sale.",
    ),
    "Portuguese": ("Onde mora minha irmã?", "Anna, minha irmã, tem uma casa em Berna.", "Falta sal na sopa."),
    "Dutch": (
        "Waar woont mijn zus?",
        "Anna, mijn zus, heeft een huis in Bern.",
        "De soep heeft meer zout nodig.",
    ),
    "Turkish": (
        "Kız kardeşim nerede yaşıyor?",
        "Anna'nın, kız kardeşimin, Bern'de bir evi var.",
        "Çorbanın tuzu eksik.",
    ),
    "Russian": ("Где живёт моя сестра?", "У Анны, моей сестры, квартира в Берне.", "В супе не хватает соли."),
    "Arabic": ("أين تسكن أختي؟", "آنا، أختي، لديها شقة في برن.", "الحساء يحتاج إلى الملح."),
    "Hindi": ("मेरी बहन कहाँ रहती है?", "मेरी बहन आना का घर बर्न में है।", "सूप में नमक कम है।"),
    "Chinese": ("我姐姐住在哪里？", "安娜是我姐姐，她在伯尔尼有一套公寓。", "汤里要多放点盐。"),
    "Japanese": (
        "姉はどこに住んでいますか？",
        "姉のアンナはベルンに部屋があります。",
        "スープに塩が足りません。",
    ),
    "Korean": (
        "우리 언니는 어디에 살아요?",
        "우리 언니 안나는 베른에 집이 있어요.",
        "국에 소금이 더 필요해요.",
    ),
}
LEAST_AHEAD = 0.05
"""The minimum difference in cosine by which the answer must be nearer to the question than the other sentence."""


@dataclass(frozen=True, slots=True)
class EmbeddingCost:
    """The cost of vectors for everything that is indexed. `dimensions` are those of the model, 0 if unknown."""

    documents: int
    tokens: int
    dimensions: int = 0

    def __str__(self) -> str:
        size_mb = self.documents * VECTORS_EACH * self.dimensions * BYTES_A_NUMBER / 1_000_000
        size = f" and {size_mb:,.0f} MB" if self.dimensions else ""
        return f"{self.documents:,} texts are about {self.tokens:,} tokens to embed{size}"


def count_cost(dimensions: int = 0) -> EmbeddingCost:
    """Return the cost of embedding all indexed texts once. Later texts cost as much each."""
    counted = SearchOwner.objects.aggregate(documents=Sum("document_count"), words=Sum("total_length"))
    return EmbeddingCost(counted["documents"] or 0, TOKENS_PER_WORD * (counted["words"] or 0), dimensions)


def unknown_languages(endpoint: ModelEndpoint) -> list[str]:
    """Return the languages in which the answer is not clearly nearer to its question than the other sentence. Raise
    ModelError."""
    texts = [text for probe in PROBES.values() for text in probe]
    vectors = iter(embed_texts(endpoint, texts))
    unknown = []
    for language in PROBES:
        question, answer, other = (_unit(next(vectors)) for _ in range(3))
        if float(question @ answer) - float(question @ other) < LEAST_AHEAD:
            unknown.append(language)
    return unknown


def _unit(vector: Sequence[float]) -> np.ndarray:
    numbers = np.asarray(vector, dtype=np.float64)
    # Do not divide by 0: NaN compares as not less, so that the language would count as known.
    return numbers / (float(np.linalg.norm(numbers)) or 1.0)
