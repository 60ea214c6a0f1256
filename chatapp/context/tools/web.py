"""Which hosts of the web the operator lets tools ask."""

from __future__ import annotations

from agents.guarded_http import HostRules
from chatapp.operations.changeable_settings import current


class AllowedHosts:
    def rules(self) -> HostRules:
        return HostRules(tuple(current("HTTP_FETCH_HOSTS")), tuple(current("HTTP_FETCH_OWN_HOSTS")))
