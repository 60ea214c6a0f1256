"""`manage.py serve`: runs the web process, or without REDIS_URL the whole service."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from chatapp.operations.serving.launcher import WebProcess
from chatapp.operations.serving.listener import CannotServe


class Command(BaseCommand):
    help = "Serves pages, API and sockets; without REDIS_URL the background worker and the clock as well."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=int, default=settings.PORT, help="0: any free one")
        parser.add_argument("--migrate", action="store_true", help="bring the database up to date first")

    def handle(self, *args: Any, host: str, port: int, migrate: bool, **options: Any) -> None:
        try:
            process = WebProcess(host, port, migrates=migrate)
        except CannotServe as error:
            raise SystemExit(str(error)) from None
        process.run()
