"""New chats that begin with a part of another."""
