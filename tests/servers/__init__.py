"""Real servers for the tests: PostgreSQL, Redis, our own processes, a model server. Each is ended by its process id."""
