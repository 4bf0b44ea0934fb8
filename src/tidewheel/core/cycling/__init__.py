"""Represents cycle points, the intervals between them and their sequences as integers."""
