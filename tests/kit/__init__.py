"""The test kit: a simulated world, virtual time, and hosts that follow a script."""
