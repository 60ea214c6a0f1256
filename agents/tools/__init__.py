"""Tools that an agent may call, behind one protocol."""
