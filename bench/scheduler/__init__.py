"""Running workflows beside cylc-flow, HyperQueue, Dask and a bare loop (goals P1 to P7)."""
