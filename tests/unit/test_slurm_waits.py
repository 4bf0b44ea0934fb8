"""Of a job in Slurm's queue somebody is told if it will not leave it by itself."""

import pytest

from tidewheel.runners.slurm.outcome import is_of_queue, turn_words, waiting_words
from tidewheel.runners.slurm.programs import SlurmRow


def row(reason, state="PENDING"):
    return SlurmRow(id="47", state=state, reason=reason, nodes="", name="a.1.key")


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("JobHeldUser", "it is held: scontrol release 47 releases it"),
        ("ReqNodeNotAvail, UnavailableNodes:n3", "nodes that it asks for are down or reserved"),
        ("PartitionTimeLimit", "its partition allows only a shorter --time"),
        ("QOSMaxWallDurationPerJobLimit", "scontrol show job 47 says more"),
        ("SomethingNew", "scontrol show job 47 says more"),
    ],
)
def test_what_needs_somebody_is_told_with_what_to_do(reason, advice):
    expected = f"waiting: Slurm job 47 stays in Slurm's queue ({reason}); {advice}"
    assert waiting_words(row(reason)) == expected


@pytest.mark.parametrize(
    "reason",
    ["None", "Priority", "Resources", "BeginTime", "AssocMaxJobsLimit", "QOSGrpCpuLimit"],
)
def test_what_passes_by_itself_is_not_told(reason):
    assert waiting_words(row(reason)) == ""


def test_who_runs_waits_for_nothing():
    assert waiting_words(row("JobHeldUser", state="RUNNING")) == ""


def test_such_words_do_not_mean_that_the_job_has_begun():
    assert is_of_queue(waiting_words(row("JobHeldUser")))
    assert is_of_queue(turn_words(row("Priority")))
    assert not is_of_queue("half way")
