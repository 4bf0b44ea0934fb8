"""What every part of the bench is given: the systems, the sizes, where to work."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.environments import CannotInstall
from bench.scheduler.bounded import Failed, run
from bench.scheduler.cylc_side import Cylc
from bench.scheduler.report import Section
from bench.scheduler.tidewheel_side import Tidewheel

CHILD_SECONDS_MAX = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of each."""

    cycles: int = 1_000
    chain: int = 1_000
    fan: int = 10_000
    cylc_cycles: int = 100
    cylc_chain: int = 50
    cylc_fan: int = 1_000
    live_cycles: int = 100
    live_fan: int = 1_000
    live_chain: int = 100
    cylc_live: int = 40  # independent tasks
    cylc_live_chain: int = 8
    starts: int = 5
    runs: int = 5_000  # in a store of which they are listed
    core: int = 20_000  # completions
    widths: tuple[int, ...] = (10, 100, 1_000, 10_000)
    growth_tasks: int = 100_000
    runaheads: tuple[int, ...] = (5, 50)
    pool: int = 100_000
    cylc_seconds_max: float = 180.0
    rounds: int = 2


# For `make bench`: the goals' sizes, and as little of Cylc as gives a rate.
SHORT = Sizes(
    cylc_cycles=20,
    cylc_chain=15,
    cylc_fan=200,
    cylc_live=8,
    cylc_live_chain=3,
    growth_tasks=40_000,
    cylc_seconds_max=40.0,
    rounds=1,
)
QUICK = Sizes(
    cycles=50,
    chain=100,
    fan=100,
    cylc_cycles=3,
    cylc_chain=3,
    cylc_fan=20,
    live_cycles=3,
    live_fan=20,
    live_chain=5,
    cylc_live=2,
    cylc_live_chain=2,
    starts=2,
    runs=50,
    core=2_000,
    widths=(10, 100),
    growth_tasks=1_000,
    pool=5_000,
    cylc_seconds_max=40.0,
    rounds=1,
)


@dataclass(kw_only=True)
class Bench:
    """One run of the bench."""

    folder: Path
    sizes: Sizes
    tidewheel: Tidewheel
    versions: dict[str, str] = field(default_factory=dict)
    with_cylc: bool = True

    @cached_property
    def cylc(self) -> Cylc:
        if not self.with_cylc:
            raise Failed("left out (--no-cylc)")
        cylc = Cylc(self.folder)
        self.versions["cylc-flow"] = cylc.version
        return cylc

    def child(self, module: str, *arguments: object) -> Any:
        """What a module of this bench answers, run in a process of its own."""
        command = [sys.executable, "-m", f"bench.scheduler.{module}"]
        command += [str(argument) for argument in arguments]
        log = self.folder / "child.log"
        ran = run(command, log, seconds_max=CHILD_SECONDS_MAX)
        if not ran.is_complete:
            raise Failed(f"{module}: took over {CHILD_SECONDS_MAX:.0f} s")
        return json.loads(ran.output) if ran.output else None


@contextmanager
def measured_or_listed(section: Section, what: str) -> Iterator[None]:
    """A system that cannot be measured is listed with its reason, and the rest goes on."""
    say(f"{what} …")
    try:
        yield
    except (CannotInstall, Failed, OSError, subprocess.SubprocessError) as error:
        section.not_measured.append(f"{section.title.partition(':')[0]}, {what}: {error}")


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
