"""Feature packages. Only `urls.py` and commands import them; no other package depends on them."""
