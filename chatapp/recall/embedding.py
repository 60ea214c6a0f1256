"""Gets vectors of documents and questions from the operator's embeddings endpoint. Search works without one.

The worker embeds documents. A question is embedded while its user waits, with a short timeout.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.conf import settings

from agents.chat_models.openai_client import embed_texts
from agents.errors import ModelError
from agents.types import ModelEndpoint
from chatapp.operations.database.work_budget import UNBOUNDED
from chatapp.recall.actions.vectors import DocumentVectors, begin_vectors, drop_other_vectors, store_vectors
from chatapp.recall.selectors.user_index import EVERYTHING, SearchFilter, UserIndex, texts_of_documents
from chatapp.recall.vectors import NOTHING_NEAR, NearDocuments
from memory.language.sentences import split_sentences

log = logging.getLogger(__name__)

# If the endpoint fails, only the current batch is lost: earlier ones are stored.
DOCUMENTS_AT_ONCE = 64
TEXTS_AT_ONCE = 128
REFUSED = frozenset({"bad_request", "overflow"})
"""Categories of errors that a single text may cause."""
HARMLESS = "word"
MAX_SENTENCES = 8
LEAST_SENTENCE_CHARS = 20
QUESTION_TIMEOUT_S = 2.0
REST_AFTER_FAILURE_S = 30.0


def endpoint() -> ModelEndpoint | None:
    """Return the embeddings endpoint; None if none is configured."""
    if not settings.EMBEDDINGS_MODEL:
        return None
    return ModelEndpoint(
        model_id=settings.EMBEDDINGS_MODEL,
        base_url=settings.EMBEDDINGS_BASE_URL,
        api_key=settings.EMBEDDINGS_API_KEY,
        connect_timeout_s=settings.MODEL_CONNECT_TIMEOUT_S,
        first_token_timeout_s=settings.MODEL_FIRST_TOKEN_TIMEOUT_S,
    )


@dataclass(slots=True)
class _Health:
    """The state of the endpoint. It is not called for a while after a failure, or every question would wait for it."""

    rests_until: float = 0.0


_health = _Health()


def is_resting() -> bool:
    """Return whether the endpoint failed recently and is not called for now."""
    return time.monotonic() < _health.rests_until


def embed_question(text: str) -> list[float] | None:
    """Return the vector of a question; None if no endpoint is configured or it does not respond in time."""
    asked = endpoint()
    if asked is None or is_resting():
        return None
    quick = replace(asked, connect_timeout_s=QUESTION_TIMEOUT_S, first_token_timeout_s=QUESTION_TIMEOUT_S)
    try:
        return embed_texts(quick, [text])[0]
    except ModelError as error:
        _health.rests_until = time.monotonic() + REST_AFTER_FAILURE_S
        log.warning("The embeddings endpoint did not respond (%s); searching by words only.", error)
        return None


def find_near_documents(index: UserIndex, question: str, only: SearchFilter = EVERYTHING) -> NearDocuments:
    """Return the documents near a question; none if no endpoint is configured or it does not respond."""
    asked = embed_question(question) if settings.EMBEDDINGS_MODEL else None
    return index.near(asked, settings.EMBEDDINGS_MODEL, only) if asked else NOTHING_NEAR


def embed_index(user_id: UUID) -> int:
    """Embed documents of a user that lack vectors; return how many. Raise ModelError; finished batches stay stored."""
    asked = endpoint()
    if asked is None:
        return 0
    made = 0
    UNBOUNDED.work(lambda: drop_other_vectors(user_id=user_id, model=asked.model_id))
    # Query again in each round, because documents are added while the endpoint works.
    while missing := begin_vectors(user_id=user_id, model=asked.model_id):
        ordinals = missing[:DOCUMENTS_AT_ONCE]
        documents = _embed(asked, texts_of_documents(user_id, ordinals))
        # Stop: another worker embeds the same documents, and both would pay the endpoint for them.
        if not store_vectors(user_id=user_id, model=asked.model_id, ordinals=ordinals, documents=documents):
            break
        made += len(documents)
    return made


def _embed(asked: ModelEndpoint, texts: dict[int, str]) -> list[DocumentVectors]:
    parts = [(ordinal, part) for ordinal, text in texts.items() for part in _parts(text)]
    vectors: dict[int, list[Sequence[float]]] = {ordinal: [] for ordinal in texts}
    for start in range(0, len(parts), TEXTS_AT_ONCE):
        batch = parts[start : start + TEXTS_AT_ONCE]
        answers = _embed_some(asked, [part for _, part in batch])
        for (ordinal, _), vector in zip(batch, answers, strict=True):
            if vector is not None:
                vectors[ordinal].append(vector)
    return [DocumentVectors(ordinal, found) for ordinal, found in vectors.items() if found]


def _embed_some(asked: ModelEndpoint, texts: Sequence[str]) -> list[Sequence[float] | None]:
    """Return a vector for each text; None for a text that the endpoint refuses. Raise ModelError if it refuses all."""
    try:
        return list(embed_texts(asked, texts))
    except ModelError as error:
        if error.category not in REFUSED:
            raise
        refusal = error
    # An endpoint that refuses this, too, is misconfigured: raise the error, and retry later.
    embed_texts(asked, [HARMLESS])
    if len(texts) == 1:
        log.warning("The embeddings endpoint refused a text; it can be found by its words only: %s", refusal)
        return [None]
    half = len(texts) // 2
    return [*_embed_some(asked, texts[:half]), *_embed_some(asked, texts[half:])]


def _parts(text: str) -> list[str]:
    """Return the whole text and, if it has several sentences, the first long ones."""
    sentences = [sentence.strip() for sentence in split_sentences(text)]
    long = [sentence for sentence in sentences if len(sentence) >= LEAST_SENTENCE_CHARS]
    return [text, *long[:MAX_SENTENCES]] if len(sentences) > 1 else [text]
