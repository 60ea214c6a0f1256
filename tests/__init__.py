"""The test suite; black-box tests talk to real processes, see `tests.servers`."""
