"""Everything that touches the world: database, sockets, files, tasks, pages."""

__version__ = "0.1.0"
