"""The seed that the campaigns of one commit begin with."""

import os
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def base_seed(request):
    """New worlds for every commit, which is then green or red and not sometimes either.

    SIM_SEED replays others; `make sim` looks for more.
    """
    chosen = int(os.environ.get("SIM_SEED") or seed_of_the_commit())
    request.node.user_properties.append(("base seed", chosen))
    print(f"base seed {chosen}")  # noqa: T201 - shown with a failure
    return chosen


def seed_of_the_commit() -> int:
    """Its first digits; without a repository (an unpacked release) always the same worlds."""
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return int(asked.stdout[:8], 16) if asked.returncode == 0 else 1
