"""Objects that threads share are thread-safe: each mutable one is listed here with the reason."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest

from chatapp.recall.analysis import pack_terms, questions, vocabulary
from memory.language.languages import LATIN, stem_word
from memory.language.terms import Analyzer
from tests.setup.shared_objects import shared_objects

SAFE_TYPES = {
    "_contextvars.ContextVar": "each task has its own value",
    "_thread._local": "each thread has its own",
    "_thread.lock": "a lock",
    "builtins.tuple": "of things made at start: routers, expressions",
    "celery.app.base.Celery": "made for all threads",
    "channels.routing.URLRouter": "made at start",
    "concurrent.futures.thread.ThreadPoolExecutor": "made for all threads",
    "django.core.signing.Signer": "keeps nothing of what it signs",
    "django.template.library.Library": "filled at start",
    "django.utils.functional.lazy": "translated anew for whoever reads it",
    "django.db.models.query.QuerySet": "each use clones it",
    "django.db.models.query_utils.Q": "never changed",
    "django.dispatch.dispatcher.Signal": "has a lock; receivers are connected at start",
    "json.decoder.JSONDecoder": "keeps nothing between two calls",
    "mcp.server.lowlevel.server.Server": "handlers made at start; what is asked goes in a context variable",
    "ninja.main.NinjaAPI": "made at start",
    "ninja.params.models.Header": "never changed",
    "ninja.router.Router": "made at start",
    "chatapp.operations.http.routers.Router": "made at start",
    "numpy.dtypes": "never changed",
    "numpy.ndarray": "read only",
    "prometheus_client.metrics": "have locks",
    "pydantic.fields.FieldInfo": "never changed",
    "pydantic.type_adapter.TypeAdapter": "a compiled validator, which keeps nothing",
    "threading.BoundedSemaphore": "a lock",
    "threading.Event": "made for all threads",
    "twisted.internet.asyncioreactor.AsyncioSelectorReactor": "of the one loop",
    "weakref.WeakKeyDictionary": "by loop: each changes its own",
}
OURS = {
    "memory.language.languages._stemmers": "each thread has its own",
    "agents.chat_models.openai_client._loops": "by loop: each changes its own",
    "agents.chat_models.openai_model._dialects": "single writes; whoever misses one learns it again",
    "agents.chat_models.prompted_model._without_tools": "single writes; whoever misses one learns it again",
    "agents.chat_models.prompted_model._without_bare_calls": "single writes; whoever misses one learns it again",
    "agents.chat_models.usage._counted": "single writes; whoever misses one counts again",
    "chatapp.accounts.archive._added": "at start",
    "chatapp.accounts.archive.takers": "at start",
    "chatapp.operations.configuration.changeable_settings._latest": "single writes of what was read",
    "chatapp.operations.database.threads._together": "its queue is a deque, which one thread empties",
    "chatapp.operations.configuration.environment.problems": "at start",
    "chatapp.operations.configuration.environment.shown": "at start",
    "chatapp.operations.configuration.environment._from_file": "at start",
    "chatapp.operations.database.ids._ids": "has a lock",
    "chatapp.operations.workers.jobs._gatherer": "has a lock",
    "chatapp.operations.workers.jobs._messenger": "has a lock",
    "chatapp.operations.monitoring.metrics._starts": "single calls of a dictionary in C, by run",
    "chatapp.operations.database.postgresql._look": "has a lock",
    "chatapp.operations.serving.asgi.http_application": "made at start",
    "chatapp.operations.telemetry._no_span": "keeps nothing",
    "chatapp.operations.workers.signals._begun": "single writes, by task",
    "chatapp.providers.calibration._gathered": "changed under its lock",
    "chatapp.realtime.hub.hub": "of the one loop",
    "chatapp.realtime.rights.rights_watch": "of the one loop",
    "chatapp.recall.analysis.analyzer": "hammered below",
    "chatapp.recall.analysis.vocabulary": "hammered below",
    "memory.summaries.extractive._vocabulary": "the same as the one before",
    "chatapp.recall.analysis.questions": "hammered below",
    "chatapp.recall.embedding._health": "single writes of a time",
    "chatapp.runs.runner.process": "of the one loop",
    "chatapp.runs.tool_ports._waiting": "of the one loop",
}
SAFE_CLASSES = ("chatapp.operations.caching.lru_cache.LruCache", "chatapp.recall.index_cache.IndexCache")
"""These classes have locks."""
CACHED = {
    "memory.strict_types.strict_checks": "never changed",
    "memory.language.languages._latin_stop_words": "never changed",
    "memory.long_term.claim_structure.without_now": "tuples of a text and a truth value",
    "memory.long_term.memory_requests._kind_of": "a word or None",
    "agents.chat_models.openai_client._blocking_client": "its pool of connections is made for all threads",
    "agents.guarded_http.tls_context": "made for all threads",
    "agents.tools.mcp._load_sdk": "names of a library",
    "agents.loop.tool_calls._validator": "keeps nothing of what it checks",
    "memory.language.date_names.date_names": "frozen",
    "memory.recall.dates._days_in_words": "never changed",
    "memory.language.date_names._stemmed_months": "never changed",
    "chatapp.files.offloads._bucket": "its client is made for all threads",
    "chatapp.operations.encryption._box_for": "keeps nothing of what it encrypts",
    "chatapp.operations.http.frontend.preloaded_modules": "never changed",
    "chatapp.operations.http.description.described": "never changed",
    "chatapp.operations.database.statements._reader": "a function",
    "chatapp.operations.database.statements._insert": "never changed",
    "chatapp.operations.translations._catalogue": "never changed",
    "chatapp.operations.database.statements._update": "never changed",
    "chatapp.recall.ranking._length_bonuses": "never changed",
    "chatapp.providers.model_facts._find_in_table": "frozen",
    "chatapp.providers.model_facts._table": "never changed",
}
PLAIN = {f"cached: {name}" for name in ("str", "int", "bool", "frozenset[str]", "int | None", "SafeString")}
THREADS = 8


@pytest.mark.slow
def test_every_mutable_object_that_threads_share_is_listed() -> None:
    unknown = {
        name: what
        for name, what in shared_objects()
        if name not in OURS
        and name not in CACHED
        and what not in PLAIN
        and not what.startswith((*SAFE_TYPES, *SAFE_CLASSES))
    }
    assert not unknown, "make it one per thread or give it a lock, and say here why it is safe"


def test_text_analysis_gives_the_same_results_on_many_threads() -> None:
    """A stemmer, parser or cache that is not thread-safe would mix the words of two threads, or fail."""
    chance = random.Random(7)
    stems = (
        "run",
        "garten",
        "heureux",
        "corr",
        "lieb",
        "vis",
        "programm",
        "кни",
        "читат",
        "كتاب",
        "記憶",
        "बात",
    )
    ends = ("ning", "ers", "ation", "lich", "ement", "ando", "ungen", "s", "ами", "ات", "", "ों")
    texts = [
        " ".join(chance.choice(stems) + chance.choice(ends) + str(chance.randrange(50)) for _ in range(20))
        + f" on {1 + number % 28} May 2024, 4月{1 + number % 28}日, am {1 + number % 28}. Mai"
        for number in range(20)
    ]
    languages = sorted(LATIN)

    def read(text: str) -> object:
        analyzer = Analyzer(max_remembered=50)
        read_now = questions.read(text, date(2024, 6, 1))
        return (
            read_now,
            pack_terms(text),
            vocabulary.content_words(text),
            analyzer.document_terms(text),
            [stem_word(word, LATIN[language]) for language in languages for word in text.split()],
        )

    alone = [read(text) for text in texts]
    shuffled = [at for _ in range(THREADS) for at in chance.sample(range(len(texts)), len(texts))]
    with ThreadPoolExecutor(THREADS) as threads:
        together = list(threads.map(lambda at: read(texts[at]), shuffled))
    assert together == [alone[at] for at in shuffled]
