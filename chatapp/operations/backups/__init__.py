"""Backups of a whole deployment in one private file: database, uploads, offloaded results and the secret key."""
