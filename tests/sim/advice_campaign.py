"""Breaks random workflows and follows what `why` advises: that repairs them.

python -m tests.sim.advice_campaign --seed 7 --schedules 1000
"""

import sys

from tests.sim.played import play_all
from tests.sim.test_sched_advice import play

if __name__ == "__main__":
    sys.exit(play_all("tests.sim.advice_campaign", __doc__.partition("\n")[0], play))
