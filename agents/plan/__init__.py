"""Plan mode: a question split into steps that depend on each other and run in parallel."""
