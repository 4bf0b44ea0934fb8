"""Runs on the command line: beginning them, looking at them, acting on them."""
