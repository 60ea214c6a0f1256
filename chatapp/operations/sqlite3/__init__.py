"""Django's backend for SQLite, whose connections outlive the thread that opened them."""
