"""New chats that start from a part of another."""
