"""What a deletion reaches, proposals, receipts."""
