"""Measurements, printed as ratios side by side. Never asserted in tests."""
