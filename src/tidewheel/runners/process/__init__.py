"""Starts, watches, measures and ends processes of this machine."""
