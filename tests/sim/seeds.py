"""Every campaign of random worlds, and its seeds: a fixed set, what failed once, a fresh one.

CI plays the fixed set and what failed once, and nothing else: whether a change can land never
depends on luck. `make test` by hand adds a fresh seed, and `make soak` plays only fresh ones.
A seed that fails is a defect to mend at once; it joins ONCE_FAILED below and stays there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

# Of whatever draws lots in CI. Nothing about a commit, a day or a machine changes it, and it is
# never replaced by another because of what it shows.
FIXED_SEED = 1
SEED_COUNT = 2**32  # fresh ones are below this
FRESH = "SIM_SEED"  # in the environment: `make test` by hand sets it


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """One simulator, and how many of its worlds `make test` lives through."""

    module: str
    counted: str = "--schedules"  # the option that says how many worlds
    parts: int = 4  # tests that the fixed set is cut into, so that every core has some
    each: int  # worlds of a part; of the fresh ones, too
    # A seed is a world only until the simulator draws differently, so each of these mistakes
    # also has a test of its own.
    once_failed: dict[int, str] = field(default_factory=dict)

    def command(self, seed: int, count: int = 1) -> tuple[str, ...]:
        """The words after `python -m` for so many worlds from this seed on."""
        return (self.module, "--seed", str(seed), self.counted, str(count))

    def again(self, seed: int) -> str:
        """The command that shows one world again."""
        return f".venv/bin/python -m {' '.join(self.command(seed))}"

    def begins(self) -> list[int]:
        """The first seed of each part of what `make test` plays."""
        fresh = fresh_seed()
        return [
            *(FIXED_SEED + part * self.each for part in range(self.parts)),
            *([] if fresh is None else [fresh]),
        ]


CAMPAIGNS = {
    "queue": Campaign(
        module="tests.kit.simulate",
        each=30,
        once_failed={
            41000383: "a claim that came after the farewell of its worker broke it",
            52001420: "a monitor that stood still in a call took leases back after an outage",
            4021256014: "the judge did not see that a refused adoption settles the attempt",
            2018517559: "the simulator mixed up what a job said while its worker stood still",
            62002742: "a monitor took an old answer for a sign that the store was there",
        },
    ),
    "runs": Campaign(
        module="tests.sim.joint_campaign",
        each=50,
        once_failed={
            2: "verify took every task that was submitted and still pooled for a mistake",
            41: "a copy of an old batch that came late broke the store",
            6084: "a run that stalled again in the pass in which its stall ended had no timer",
            2925859822: "a task that was not taken and then removed came back and waited",
            197057536071: "the simulator lost the answers of a scheduler whose cut had ended",
        },
    ),
    "oracle": Campaign(module="tests.sim.sched_oracle_campaign", counted="--graphs", each=150),
    "commands": Campaign(
        module="tests.sim.commands_campaign",
        each=50,
        once_failed={
            **dict.fromkeys(
                (
                    *(149, 5007, 5011, 5041, 5154, 5269, 5460),
                    *(170359, 170734, 170758, 880004, 990303),
                ),
                "before causes were noted here",
            ),
            77043: "what ran in no flow behind the horizon lost its history at a restart",
            135: "after a reload all elements of another list were taken for done",
            185766409: "who was spawned behind the horizon after a reload was not evaluated",
            920000090: "how a task ended was lost when it ran again after a reload needed it",
            192: "a member that had failed and then succeeded alone still blocked who waits",
            910000562: "nor was who was spawned before the point from which on a flow counts",
            2396213869: "who left a flow did not hear of what all of its other flows ignore",
        },
    ),
    "advice": Campaign(
        module="tests.sim.advice_campaign",
        each=100,
        once_failed={
            250830045: "a trigger behind the horizon did not see who waits for a fixed point",
            13132420: "nothing was advised for a family that is off its sequence",
            1990095: "what waits for a list was advised to take it as there, which no task can",
        },
    ),
    "properties": Campaign(
        module="tests.sim.properties_campaign",
        each=30,
        once_failed={
            4128951812: "the oracle did not know who is spawned by a withdrawn verdict",
            3559956537: "families counted members of whom a reload knew sooner they won't come",
            3687068975: "the oracle let nobody fail who had succeeded without an output",
            2380396632: "a reload did not see that a new arrow asks for a failure before all",
            1370946374: "a reload gave a verdict another member of the family as its cause",
            2107673408: "behind one run by hand none showed of those that a fixed point blocks",
            7300015: "the oracle did not know who is blocked and then waits, cause mended",
            910000200: "the test added outputs that a task which had ended should have made",
            50000220: "any of no elements was not taken while another flow's list was to come",
        },
    ),
}


def fresh_seed() -> int | None:
    """The seed that this run of the tests adds to the fixed ones, if it adds any."""
    given = os.environ.get(FRESH)
    return int(given) if given else None
