"""One module per measured system, each with ``open_peer`` and ``work``."""
