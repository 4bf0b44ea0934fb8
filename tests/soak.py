"""Plays worlds that nobody has seen before, on every core, for some minutes: `make soak`.

Each campaign of tests/sim/seeds.py has its turns, each turn from a fresh seed. A seed that
fails is told with the command that shows it again, at once and at the end, and the status
is 1.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # it is started as a file, as run_suites.py is

from tests.sim.seeds import CAMPAIGNS, SEED_COUNT, Campaign  # noqa: E402 - from there

TURN_SECONDS = 20.0
# Worlds take seconds; a turn that goes on for this much longer than it should does not end.
HANG_SECONDS = 900.0
COUNT_MAX = 10_000_000  # the time ends a turn
SHOWN_CHARACTERS = 3_000


@dataclass(slots=True, kw_only=True)
class Soak:
    """What has been played until now, on all cores together."""

    campaigns: Mapping[str, Campaign]
    ends_at: float  # of time.monotonic
    turns: Iterator[str] = field(init=False)
    worlds: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)  # the commands that show it again
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.turns = itertools.cycle(self.campaigns)

    def work(self) -> None:
        """Take turns until the time is over; one core's share."""
        chance = random.SystemRandom()
        while (left := self.ends_at - time.monotonic()) > 0:
            with self.lock:
                name = next(self.turns)
            seed = chance.randrange(SEED_COUNT)
            seconds = min(TURN_SECONDS, left)
            self.note(name, seed, *play(self.campaigns[name], seed, seconds))

    def note(self, name: str, seed: int, status: int, output: str) -> None:
        """Tell what came of a turn."""
        with self.lock:
            worlds = count_in(output)
            self.worlds[name] += worlds
            left = max(0.0, self.ends_at - time.monotonic())
            if status == 0:
                say(f"{name}: {worlds} from seed {seed}, nothing wrong; {left:.0f} s left")
                return
            again = again_in(output) or f".venv/bin/python -m {self.campaigns[name].module}"
            again = again if "--seed" in again else f"{again} --seed {seed}"
            self.failed.append(again)
            say(f"{output[-SHOWN_CHARACTERS:]}\nFAILED, {name}: {again}; {left:.0f} s left")


def play(campaign: Campaign, seed: int, seconds: float) -> tuple[int, str]:
    """One turn: the status of its simulator, and what it printed."""
    command = campaign.command(seed, COUNT_MAX)
    try:
        done = subprocess.run(
            [sys.executable, "-m", *command, "--seconds", f"{seconds:.1f}"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds + HANG_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as hung:
        told = hung.stdout or b""
        text = told.decode(errors="replace") if isinstance(told, bytes) else told
        return 1, f"{text}\nit did not end"
    return done.returncode, done.stdout


def count_in(output: str) -> int:
    """How many worlds a simulator has lived through, whether or not something was wrong."""
    pattern = r"^(?:no )?(?:violation|disagreement) (?:in|after) (\d+) "
    found = re.search(pattern, output, re.MULTILINE)
    return int(found[1]) if found else 0


def again_in(output: str) -> str | None:
    """The command that a simulator says shows its failure again."""
    found = re.search(r"^again: python (.*)$", output, re.MULTILINE)
    return f".venv/bin/python {found[1]}" if found else None


def soak(campaigns: Mapping[str, Campaign], seconds: float, cores: int) -> int:
    """Play for so long; the exit status."""
    soaking = Soak(campaigns=campaigns, ends_at=time.monotonic() + seconds)
    workers = [threading.Thread(target=soaking.work, daemon=True) for _ in range(cores)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for name in campaigns:
        say(f"{soaking.worlds[name]:>10} worlds of {name}")
    for again in soaking.failed:
        say(f"FAILED, again: {again}")
    if soaking.failed:
        say("Mend what they show, then keep each seed in tests/sim/seeds.py with its cause.")
        return 1
    say("no seed failed")
    return 0


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    """Play for as many minutes as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--minutes", type=float, default=10.0)
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--cores", type=int, default=cores, help="turns at the same time")
    options = parser.parse_args()
    return soak(CAMPAIGNS, options.minutes * 60, options.cores)


if __name__ == "__main__":
    sys.exit(main())
