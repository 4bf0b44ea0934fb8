"""Real parts for tests: found on the machine or installed, started, broken and stopped."""
