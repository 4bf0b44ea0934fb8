"""Scheduling block instances and their processing blocks."""
