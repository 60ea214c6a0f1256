"""Which hosts of the web the operator lets tools ask."""

from __future__ import annotations

from django.conf import settings

from agents.guarded_http import HostRules


class AllowedHosts:
    def rules(self) -> HostRules:
        return HostRules(tuple(settings.HTTP_FETCH_HOSTS), tuple(settings.HTTP_FETCH_OWN_HOSTS))
