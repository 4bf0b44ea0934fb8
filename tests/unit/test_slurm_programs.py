"""What Slurm's programs print, read."""

import asyncio
import os

import pytest

from tests.kit.runner_conformance import assigned, claimed
from tidewheel.runners.slurm.job import job_name, key_of
from tidewheel.runners.slurm.programs import Slurm, SlurmNotReached, SlurmUsage, parse_usage


@pytest.mark.parametrize(
    ("line", "usage"),
    [
        ("12.batch|00:01:02|2816K|1", SlurmUsage(62.0, 2816 * 1024)),
        ("12.0|1-00:00:01|1.5M|4", SlurmUsage(4 * 86_401.0, 4 * 1572864)),
        ("12.0|00:00.500|7|1", SlurmUsage(0.5, 7)),
    ],
)
def test_a_line_of_sstat_says_what_a_job_has_used(line, usage):
    assert parse_usage(line) == ("12", usage)


@pytest.mark.parametrize("line", ["", "12.batch||||", "12.batch|00:00:01||1", "what"])
def test_a_line_without_figures_says_nothing(line):
    assert parse_usage(line) is None


@pytest.mark.parametrize(
    "complaint",
    [
        "squeue: error: Unable to contact slurm controller (connect failure)\n"
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
        "squeue: error: Unable to contact slurm controller (connect failure).\n" * 3,
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
    ],
)
def test_what_slurm_says_twice_is_told_once(tmp_path, complaint):
    (tmp_path / "complaint").write_text(complaint)
    for name in ("sbatch", "squeue"):
        (tmp_path / name).write_text(f"#!/bin/sh\ncat {tmp_path}/complaint >&2\nexit 1\n")
        (tmp_path / name).chmod(0o700)

    async def listed():
        return await Slurm({"PATH": f"{tmp_path}:{os.environ['PATH']}"}).jobs()

    with pytest.raises(SlurmNotReached) as silent:
        asyncio.run(listed())
    assert str(silent.value) == "Unable to contact slurm controller (connect failure)"


def test_a_job_is_known_by_a_name_that_people_can_read_and_nobody_can_abuse(tmp_path):
    task = claimed(id="flow/run1/20300101T00Z/model/1", attempt=2)
    assert job_name(assigned(task, tmp_path), "abc") == "flow/run1/20300101T00Z/model/1.2.abc"
    evil = claimed(name="a|b $(id)\n--x.fff")
    assert job_name(assigned(evil, tmp_path), "abc") == "a_b___id__--x.fff.1.abc"
    assert key_of("a_b___id__--x.fff.1.abc") == "abc"
