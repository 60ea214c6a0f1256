"""Events and their readers: the log, the hub, socket and server-sent events."""
