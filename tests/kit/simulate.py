"""Simulates the queue under faults: clients, workers, monitors and a store from one seed."""

from __future__ import annotations

import sys

from tests.kit.campaign import campaign
from tests.kit.world import run_schedule

if __name__ == "__main__":
    sys.exit(campaign("tests.kit.simulate", __doc__, run_schedule))
