"""Model configurations, detection, the Test, prices, and the ledger of model calls."""
