"""Reads flow.cylc files."""
