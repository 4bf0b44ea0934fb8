"""Shows a run in a terminal (``tidewheel tui``), for people on a login node."""
