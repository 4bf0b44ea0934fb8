"""A run advances by spawn-on-demand scheduling, a pure function of pool and event."""
