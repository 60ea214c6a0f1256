"""Tools an agent may call, behind one protocol."""
