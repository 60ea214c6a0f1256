"""Django's backend for SQLite, with connections that outlive the thread that opened them."""
