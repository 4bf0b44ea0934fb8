"""Installs the engines that tests start, before any suite counts its seconds: `make parts`."""

from __future__ import annotations

from tests.support.container_engine import DOCKER
from tests.support.slurm_binaries import SLURM

if __name__ == "__main__":
    for part in (DOCKER, SLURM):
        if reason := part.missing_reason():
            print(f"Tests that need {part.name} will be skipped: {reason}.")
