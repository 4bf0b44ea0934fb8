"""The commands; `cli/main.py` says which module has which, and imports it when it is called."""
