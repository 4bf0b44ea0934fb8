"""Gives random commands to random workflows: nothing breaks, and a restart changes nothing.

python -m tests.sim.commands_campaign --seed 7 --schedules 1000
"""

import sys
from collections import Counter

from tests.sim.test_sched_commands import play
from tidewheel.testing.campaign import Outcome, campaign
from tidewheel.testing.rules.facts import BrokenInvariant


def run_schedule(seed: int, *, calm: bool, events_kept: int) -> Outcome:
    """Play one workflow; there are no faults to switch off, and all that was said is told."""
    del calm, events_kept
    broken = None
    try:
        play(seed)
    except AssertionError as error:
        broken = BrokenInvariant("no command breaks a run", str(error))
    return Outcome(
        seed=seed, broken=broken, digest="", faults=Counter(), counts={}, last_events=[]
    )


if __name__ == "__main__":
    sys.exit(campaign("tests.sim.commands_campaign", __doc__.partition("\n")[0], run_schedule))
