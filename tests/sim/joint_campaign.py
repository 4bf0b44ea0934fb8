"""Simulates runs under faults: schedulers, workers, monitors, an operator and a store.

python -m tests.sim.joint_campaign --seed 7 --schedules 1000
"""

import sys

from tests.kit.campaign import campaign
from tests.sim.joint_world import run_schedule

if __name__ == "__main__":
    sys.exit(campaign("tests.sim.joint_campaign", __doc__.partition("\n")[0], run_schedule))
