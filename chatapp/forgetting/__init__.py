"""Forgetting and deletion with everything derived from the deleted texts; proposals, receipts, the trash."""
