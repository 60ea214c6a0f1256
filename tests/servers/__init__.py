"""Real servers for the tests: PostgreSQL, Redis, our own processes, a model server. Each ended by its id."""
