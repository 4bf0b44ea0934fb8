"""What Slurm's programs print, read."""

import pytest

from tidewheel.runners.slurm.job import job_name, key_of
from tidewheel.runners.slurm.programs import SlurmUsage, parse_usage
from tidewheel.testing.runner_conformance import assigned, claimed


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


def test_a_job_is_known_by_a_name_that_people_can_read_and_nobody_can_abuse(tmp_path):
    task = claimed(id="flow/run1/20300101T00Z/model/1", attempt=2)
    assert job_name(assigned(task, tmp_path), "abc") == "flow/run1/20300101T00Z/model/1.2.abc"
    evil = claimed(name="a|b $(id)\n--x.fff")
    assert job_name(assigned(evil, tmp_path), "abc") == "a_b___id__--x.fff.1.abc"
    assert key_of("a_b___id__--x.fff.1.abc") == "abc"
