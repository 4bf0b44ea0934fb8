"""Says once each thing that leaves the process; REST, `--json` and the page derive from it."""
