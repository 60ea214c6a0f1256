"""Celery's workers and beat, and how they are woken."""
