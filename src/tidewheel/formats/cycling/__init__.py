"""Reads cycle points, intervals and recurrences as Cylc users write them."""
