"""Connections, threads, statements and transactions of the database."""
