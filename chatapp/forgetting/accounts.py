"""Deletes accounts: all content, files and memory of the user, then the account and its sessions."""

from __future__ import annotations

import shutil
from datetime import datetime
from functools import partial
from pathlib import Path

from django.db import transaction

from chatapp.accounts.actions import check_replaceable, delete_user
from chatapp.accounts.models import User
from chatapp.forgetting.actions.forget_all import StartedForgetting, forget_everything
from chatapp.forgetting.actions.removals import open_removals
from chatapp.forgetting.models import Tombstone
from chatapp.forgetting.removing import Removing, work_on
from chatapp.forgetting.services import remove_leftovers
from chatapp.long_term.files import user_folder
from chatapp.operations.database.work_budget import UNBOUNDED, delete_all


def delete_account(user: User, *, now: datetime) -> None:
    """Delete an account. Safe to repeat after an interruption. Raise Conflict for the only admin."""
    check_replaceable(user)
    folder = user_folder(user.pk)
    begun = forget_everything(user=user, now=now)
    # Include the removals of an interrupted attempt: without the user, nobody could redact copies for them.
    removals = {one.pk: one for one in (*open_removals(user.pk), *begun.removals)}
    work = [Removing(removal, now) for removal in removals.values()]
    for one in work:
        one.hide()
    work_on(work, UNBOUNDED)
    delete_all(Tombstone.objects.filter(user=user))
    delete_user(user=user)
    # The admin panel runs all of this in one transaction, and files may only be deleted after its commit.
    transaction.on_commit(partial(_remove_files, begun, folder))


def _remove_files(begun: StartedForgetting, folder: Path) -> None:
    remove_leftovers(*begun.leftovers)
    shutil.rmtree(folder, ignore_errors=True)
