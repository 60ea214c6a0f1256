"""Conversations brought along from other programs and from exports of this one."""
