"""Simulates the queue under faults: clients, workers, monitors and a store from one seed."""

from __future__ import annotations

import sys

from tidewheel.testing.campaign import campaign
from tidewheel.testing.world import run_schedule

if __name__ == "__main__":
    sys.exit(campaign("tidewheel.testing.simulate", __doc__, run_schedule))
