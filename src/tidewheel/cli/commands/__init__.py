"""Holds the commands; `cli/main.py` says where each is, and imports it when it is called."""
