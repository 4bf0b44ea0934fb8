"""Cycle points, the intervals between them and the sequences they form, as integers."""
