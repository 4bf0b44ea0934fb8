"""Workflows by name and version: registered, looked at, run."""
