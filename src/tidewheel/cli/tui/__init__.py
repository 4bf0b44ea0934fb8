"""``tidewheel tui``: a run in a terminal, for people on a login node."""
