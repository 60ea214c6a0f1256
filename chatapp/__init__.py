"""Everything that touches the world: database, sockets, files, tasks, pages."""

from chatapp.operations.workers.celery_app import app as celery_app

__version__ = "0.1.0"
__all__ = ["celery_app"]  # where `celery -A chatapp` finds it
