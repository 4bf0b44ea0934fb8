"""Gives random commands to random workflows: nothing breaks, and a restart changes nothing.

python -m tests.sim.commands_campaign --seed 7 --schedules 1000
"""

import sys

from tests.sim.played import play_all
from tests.sim.test_sched_commands import play

if __name__ == "__main__":
    sys.exit(play_all("tests.sim.commands_campaign", __doc__.partition("\n")[0], play))
