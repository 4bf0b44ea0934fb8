"""How long it takes to read, compile and check a definition, beside cylc-flow (goal P12)."""
