"""Models and agents that operators allow a group. A group without a row, or with an empty list, restricts nobody."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.db.models import CASCADE, ManyToManyField, Model, OneToOneField
from django.utils.translation import gettext


class GroupAccess(Model):
    group = OneToOneField(Group, on_delete=CASCADE, related_name="access")
    models = ManyToManyField(
        "chatapp.ModelConfig",
        blank=True,
        related_name="+",
        help_text="Members may use only these; if none is chosen, all. Lists of several groups are combined.",
    )
    agents = ManyToManyField(
        "chatapp.Agent",
        blank=True,
        related_name="+",
        limit_choices_to={"owner": None},
        help_text="The same for agents. The assistant without an agent, and users' own agents, are open to everybody.",
    )

    class Meta:
        verbose_name = "models and agents"
        verbose_name_plural = "models and agents"

    def __str__(self) -> str:
        return gettext("what %(group)s may use") % {"group": self.group}
