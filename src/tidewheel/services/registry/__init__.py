"""Registers workflows by name and version, shows and runs them."""
