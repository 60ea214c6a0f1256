"""Feature packages: each is imported by `urls.py` and commands alone, and nothing else knows of it."""
