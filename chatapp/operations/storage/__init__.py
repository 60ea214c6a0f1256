"""Files on disk: durable, private, and from uploaded archives."""
