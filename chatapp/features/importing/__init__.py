"""Imports conversations and accounts from other programs and from exports of this service."""
