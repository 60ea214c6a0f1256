"""The admin panel: its site, what its pages share, and the page of the audit log."""
