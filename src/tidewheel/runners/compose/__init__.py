"""Tasks whose job is a set of containers on the engine beside the worker."""
