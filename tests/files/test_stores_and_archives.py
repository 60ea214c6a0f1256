"""Appends to the object store, copies of attachments, and archives of accounts."""

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from chatapp.accounts.archive import write_account_archive
from chatapp.accounts.models import User
from chatapp.files.attachments import content_path, copy_attachment, store_upload
from chatapp.files.models import Attachment
from chatapp.forgetting.services import delete_file
from chatapp.operations.errors import ServiceError
from tests.memory_store.rows import NOW

ROOT = Path(__file__).resolve().parents[2]
Clients = Callable[[User], Client]

APPEND = """
import resource, sys
from pathlib import Path
from chatapp.files.object_store import DiskStore
store = DiskStore(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))  # as a disk that becomes full while it is written
try:
    store.append("a/context.jsonl", b"x" * 1_500)
    print("stored")
except OSError:
    print("refused")
"""


def test_an_append_stores_everything_or_raises_an_error(tmp_path: Path):
    """An unbuffered `write` may write only a part and return its size."""
    done = subprocess.run(
        [sys.executable, "-c", APPEND, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    stored = (tmp_path / "a" / "context.jsonl").read_bytes()
    assert done.stdout.strip() == "refused" or len(stored) == 1_500


def test_copying_a_file_that_is_deleted_meanwhile_makes_no_row_without_bytes(alice: User, charlie: User):
    """The copy must check under the lock of the hash whether the bytes still exist."""
    original = store_upload(user=alice, name="a.txt", content=b"some text")
    read_before = Attachment.objects.get(pk=original.pk)
    delete_file(
        alice, str(original.pk), now=NOW
    )  # by another request, between reading the row and copying it
    try:
        copy = copy_attachment(read_before, user=charlie)
    except ServiceError:
        return
    assert content_path(copy.sha256).exists()


@pytest.mark.sqlite
def test_an_account_with_invalid_unicode_in_its_claims_can_be_exported(alice: User):
    """One invalid character must not prevent the whole archive."""
    SocialAccount.objects.create(user=alice, provider="sso", uid="1", extra_data={"name": "A\ud83d"})
    with zipfile.ZipFile(write_account_archive(alice, ())) as archive:
        assert "account.json" in archive.namelist()
