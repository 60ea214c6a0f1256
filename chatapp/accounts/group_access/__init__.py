"""Which models and agents the members of a group may use."""
