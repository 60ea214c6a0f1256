"""Values that a process or Redis keeps for a while."""
