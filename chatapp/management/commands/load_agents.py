"""`manage.py load_agents FILE`: loads agents, and hooks of the deployment and of conversations, from YAML."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.loop.hooks import Hook
from agents.presets.agent_file import AgentProfile, ProfileError, list_ignored, read_agent_file
from chatapp.agent_presets.actions import LoadedAgent, load_agents
from chatapp.context.tools.registry import local_tools, tool_names
from chatapp.management.yaml_files import read_yaml_file
from chatapp.operations import clock
from chatapp.operations.errors import ServiceError


class Command(BaseCommand):
    help = "Creates or updates agents and hooks from a YAML file. Keys may be written as {{env.NAME}}."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        content = read_yaml_file(file, "Nothing was loaded.")
        try:
            read = read_agent_file(content, os.environ)
            check_tools(read.agents)
            loaded = load_agents(file=read, tools=tool_names(), now=clock.now())
        except ProfileError as error:
            raise CommandError(f"{file}: {error}. Nothing was loaded.") from None
        except ServiceError as error:
            raise CommandError(f"{file}: {error.message} Nothing was loaded.") from None
        for each in loaded:
            self.stdout.write(describe(each))
        if read.hooks:
            self.stdout.write(f"Hooks of every conversation: {named(read.hooks)}.")
        for conversation_id, hooks in read.conversations.items():
            self.stdout.write(f"Hooks of conversation {conversation_id}: {named(hooks) or 'none any more'}.")
        ignored = list_ignored(content)
        if ignored:
            self.stdout.write(f"Ignored, because not supported: {', '.join(ignored)}.")


def check_tools(profiles: Iterable[AgentProfile]) -> None:
    """Raise ProfileError for an unknown tool."""
    known = local_tools()
    for profile in profiles:
        for name in profile.tools or ():
            if name not in known:
                raise ProfileError(
                    f"{profile.name}.tools", f"unknown tool {name}; known tools: {', '.join(known)}"
                )


def named(hooks: Iterable[Hook]) -> str:
    return ", ".join(hook.id for hook in hooks)


def describe(loaded: LoadedAgent) -> str:
    agent = loaded.agent
    summaries = f", summaries by {loaded.summary_model.name}" if loaded.summary_model else ""
    hooks = f", hooks {', '.join(hook['id'] for hook in agent.hooks)}" if agent.hooks else ""
    did = "Created" if loaded.is_new else "Updated"
    return f"{did} agent {agent.name}: model {agent.model}{summaries}{hooks}."
