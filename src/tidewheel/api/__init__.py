"""Says once each thing that leaves the process; REST, `--json`, client and page follow."""
