"""Reads definitions of every kind, from which runs are made; they are kept by their content."""
