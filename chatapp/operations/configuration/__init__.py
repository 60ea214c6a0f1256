"""Settings: from the environment, and those that change without a restart."""
