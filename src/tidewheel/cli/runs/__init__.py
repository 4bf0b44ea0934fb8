"""Begins runs, looks at them and acts on them, for the command line."""
