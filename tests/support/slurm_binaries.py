"""Slurm's daemons and programs."""

from __future__ import annotations

from tests.support.debian_packages import Part, found

SLURM = Part(
    name="Slurm",
    programs=("slurmctld", "slurmd", "munged", "sbatch"),
    packages=("slurm-wlm", "munge"),
)


def program(name: str) -> str:
    """The whole path of a program of Slurm."""
    path = found(name)
    assert path is not None, f"{name} is not installed"
    return path
