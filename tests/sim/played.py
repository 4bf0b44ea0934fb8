"""Campaigns of worlds that are played in the process: what is wrong is an AssertionError."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.kit.campaign import Outcome, campaign
from tests.kit.rules.facts import BrokenInvariant


def play_all(module: str, about: str, play: Callable[[int], None]) -> int:
    """Play worlds as the command line asks; the exit status says whether one was wrong."""

    def run_schedule(seed: int, *, calm: bool, events_kept: int) -> Outcome:
        del (
            calm,
            events_kept,
        )  # there are no faults to switch off
        broken = None
        try:
            play(seed)
        except AssertionError as error:
            broken = BrokenInvariant(about, str(error))
        return Outcome(
            seed=seed, broken=broken, digest="", faults=Counter(), counts={}, last_events=[]
        )

    return campaign(module, about, run_schedule)
