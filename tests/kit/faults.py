"""What goes wrong in a schedule: how often calls fail, and what strikes processes and when.

Drawn from the seed. Each schedule has its own mixture, often with some kinds switched off:
a world in which everything fails all the time hides the bugs that need one quiet minute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

QUIET_AT = 120.0  # seconds; from then on nothing fails any more


class CallFault(StrEnum):
    """What may become of one request."""

    LOSE_REQUEST = "request lost"
    LOSE_REPLY = "reply lost"  # committed, and nobody knows
    REPEAT = "executed twice"
    DELAY = "delayed"  # so that later requests overtake it
    DIE_BEFORE = "died before commit"
    DIE_AFTER = "died after commit"


class Strike(StrEnum):
    """What may happen to a process or to all."""

    DIE = "killed"
    STAND_STILL = "stood still"
    JUMP = "clock jumped"
    PARTITION = "cut off"
    OUTAGE = "store down"
    STOP = "asked to stop"


LOST_WAKE = "wake-up lost"
SKEWED_CLOCK = "clock skewed"

# Shares per call when a kind is on.
_CALL_SHARES = {
    CallFault.LOSE_REQUEST: 0.03,
    CallFault.LOSE_REPLY: 0.04,
    CallFault.REPEAT: 0.03,
    CallFault.DELAY: 0.04,
    CallFault.DIE_BEFORE: 0.002,
    CallFault.DIE_AFTER: 0.004,
}
# How many times in a schedule when a kind is on.
_STRIKES_MAX = {
    Strike.DIE: 8,
    Strike.STAND_STILL: 8,
    Strike.JUMP: 4,
    Strike.PARTITION: 5,
    Strike.OUTAGE: 2,
    Strike.STOP: 4,
}
_SHARE_ON = 0.7  # of the kinds in one schedule
_SHARE_CALM = 0.12  # of the schedules have no fault at all


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """One strike: when, whom (a number to choose by), for how long."""

    at: float
    strike: Strike
    victim: float  # 0 … 1, among those who live at that time
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """The faults of one schedule."""

    shares: dict[CallFault, float] = field(default_factory=dict)
    blows: tuple[Blow, ...] = ()
    lost_wakes: float = 0.0  # share
    skewed_clocks: bool = False

    @property
    def calm(self) -> bool:
        return not self.shares and not self.blows


def draw_faults(chance: Random) -> FaultPlan:
    """Some kinds of faults, or none."""
    if chance.random() < _SHARE_CALM:
        # Clocks differ on healthy machines, too (scenario 43).
        return FaultPlan(skewed_clocks=True)
    shares = {
        fault: share * chance.random() * 2.0
        for fault, share in _CALL_SHARES.items()
        if chance.random() < _SHARE_ON
    }
    blows: list[Blow] = []
    for strike, most in _STRIKES_MAX.items():
        if chance.random() < _SHARE_ON:
            blows += [_draw_blow(strike, chance) for _ in range(chance.randint(1, most))]
    return FaultPlan(
        shares=shares,
        blows=tuple(sorted(blows, key=lambda blow: blow.at)),
        lost_wakes=chance.choice((0.0, 0.1, 0.9)),
        skewed_clocks=chance.choice((True, False)),
    )


def _draw_blow(strike: Strike, chance: Random) -> Blow:
    shortest, longest = (1.0, 12.0) if strike is Strike.OUTAGE else (5.0, 40.0)
    return Blow(
        at=chance.uniform(1.0, QUIET_AT),
        strike=strike,
        victim=chance.random(),
        seconds=chance.uniform(shortest, longest),
    )
