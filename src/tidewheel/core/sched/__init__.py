"""How a run advances: spawn-on-demand scheduling as a pure function of pool and event."""
