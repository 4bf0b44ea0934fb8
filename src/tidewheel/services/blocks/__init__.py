"""Serves scheduling block instances and their processing blocks."""
