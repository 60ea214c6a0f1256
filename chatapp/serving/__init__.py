"""How the service is started and serves: processes, sockets, HTTP, draining."""
