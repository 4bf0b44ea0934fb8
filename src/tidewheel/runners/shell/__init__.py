"""Runs commands by bash beside the worker."""
