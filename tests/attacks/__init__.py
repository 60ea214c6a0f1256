"""Attacks from outside on a real service: strangers, stolen sessions and tokens, hostile requests and frames.

The files of a module share one service. What needs short time limits is in `tests/setup/test_unfinished_requests.py`,
rights that end across processes in `tests/reliability/test_rights.py`.
"""
