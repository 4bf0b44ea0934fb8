"""Plays random workflows twice, once with a command: both come to the same.

python -m tests.sim.properties_campaign --seed 7 --schedules 1000
"""

import sys

from tests.sim.played import play_all
from tests.sim.test_sched_properties import play

if __name__ == "__main__":
    sys.exit(play_all("tests.sim.properties_campaign", __doc__.partition("\n")[0], play))
