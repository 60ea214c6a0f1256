"""Code shared by all packages (clock, errors, database threads, HTTP, jobs), health, metrics and serving."""
