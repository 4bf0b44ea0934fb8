"""The graph that a definition makes, before anything has run: a window of it, and as JSON."""
