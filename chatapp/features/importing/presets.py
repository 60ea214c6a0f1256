"""Makes the agents that the export of an account brings along, each the user's own and checked as any of theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agents.presets import PresetError, read_preset
from chatapp.accounts.models import User
from chatapp.agent_presets.actions import create_agent
from chatapp.agent_presets.models import Agent
from chatapp.agent_presets.services import check_preset
from chatapp.context.preset_choices import CHOICES
from chatapp.operations.errors import Conflict, InvalidInput


def take_presets(user: User, texts: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Make an agent of each YAML. Return what was left out of new agents, and which agents cannot be made, counted.

    One whose name the user has already stays as it is: an import is read again from its beginning each turn.
    """
    of_new, not_made = Counter[str](), Counter[str]()
    known = set(Agent.objects.filter(owner=user).values_list("name", flat=True))
    for text in texts:
        try:
            checked = check_preset(read_preset(text), CHOICES, owner_id=user.pk, is_import=True)
            name = str(checked.values.columns["name"])
            if name in known:
                continue
            create_agent(owner=user, values=checked.values)
        except (PresetError, InvalidInput):
            not_made["agents that cannot be read"] += 1
        except Conflict:
            not_made["agents beyond those that you may have"] += 1
        else:
            known.add(name)
            if checked.notes:
                of_new["settings of agents that are not to be had here"] += len(checked.notes)
    return of_new, not_made
