"""Plays a workflow on a virtual clock: no store, no jobs, no waiting."""
