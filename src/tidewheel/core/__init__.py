"""Decides, by functions over values: no I/O, no clock, no randomness, no logging."""
