"""Defines each thing that leaves the process once; REST, `--json` and the page follow it."""
