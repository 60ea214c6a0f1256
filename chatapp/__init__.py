"""Everything that touches the world: database, sockets, files, tasks, pages."""
