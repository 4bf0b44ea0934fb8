"""Translates calls of `cylc` that existing scripts make in jobs and event handlers."""
