"""The admin panel: its site, code shared by its pages, and the page of the audit log."""
