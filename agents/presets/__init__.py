"""Agents and hooks as YAML and JSON."""
