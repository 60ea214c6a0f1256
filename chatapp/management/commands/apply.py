"""`manage.py apply FILE`: configures models, agents and more from one YAML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.presets.yaml_text import PlaceError
from chatapp.agent_presets.deployments.actions import apply_deployment
from chatapp.agent_presets.deployments.differences import describe
from chatapp.agent_presets.deployments.schemas import Values, read_deployment
from chatapp.context.preset_choices import CHOICES
from chatapp.management.yaml_files import read_yaml_file

NOTHING = "Nothing was changed."


class Command(BaseCommand):
    help = (
        "Updates models, MCP servers, agents, hooks and groups as declared in a YAML file, all or nothing, and prints"
        " what changes. Anything the file does not mention is left unchanged. Values may be written as ${NAME}, taken"
        " from the environment."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--dry-run", action="store_true", help="print what would change, and change nothing"
        )

    def handle(self, *args: Any, file: Path, dry_run: bool, **options: Any) -> None:
        content = read_yaml_file(file, NOTHING)
        try:
            read = read_deployment(content, Values(os.environ))
            differences = apply_deployment(file=read, choices=CHOICES, is_dry_run=dry_run)
        except PlaceError as problem:
            raise CommandError(f"{file}: {problem}. {NOTHING}") from None
        for line in describe(differences):
            self.stdout.write(line)
        things = [thing for section in differences for thing in section.things]
        created = sum(thing.is_new for thing in things)
        changed = sum(bool(thing.changes) and not thing.is_new for thing in things)
        counted = f"{created} created, {changed} changed, {len(things) - created - changed} unchanged."
        self.stdout.write(f"A dry run: {counted} {NOTHING}" if dry_run else counted)
