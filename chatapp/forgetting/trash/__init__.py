"""The trash: deleted conversations that can be restored for `TRASH_DAYS`, and are then deleted for good."""
