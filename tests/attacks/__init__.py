"""Attacks from outside on a real service: strangers, stolen sessions and tokens, hostile requests and frames.

The tests of a module share one service. Tests with short timeouts are in `tests/setup/test_unfinished_requests.py`,
tests of rights that end across processes in `tests/reliability/test_rights.py`.
"""
