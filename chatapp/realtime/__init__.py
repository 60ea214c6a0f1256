"""Events and their readers: the log, the hub, the WebSocket and server-sent events."""
