"""A task of a queue that is for Slurm, as clients describe it."""

import pytest

from tidewheel.client.fields import new_task
from tidewheel.errors import InvalidTask


def made(**fields):
    return new_task("default", {"command": "true", **fields}, lambda: "t")


def test_what_it_asks_for_is_asked_of_slurm_and_not_of_the_worker():
    task = made(runner="slurm", cpu=4, memory="2GiB", timeout="10m", labels=["gpu"])
    assert task.resources.labels == {"runner:slurm", "gpu"}
    assert task.resources.cpu == task.resources.memory_bytes == 0
    assert task.timeout_seconds is None
    assert task.command.split("\n") == [
        "#SBATCH --cpus-per-task=4",
        "#SBATCH --mem=2048M",
        "#SBATCH --time=10:00",
        "true",
    ]


@pytest.mark.parametrize(
    "directives", [["--mem=1G", "exclusive"], {"--mem": "1G", "exclusive": True}]
)
def test_directives_are_a_list_or_an_object(directives):
    task = made(runner="slurm", memory="2GiB", directives=directives)
    assert task.command == "#SBATCH --mem=1G\n#SBATCH --exclusive\ntrue"


def test_a_script_that_was_written_for_sbatch_is_a_command_as_it_is():
    script = "#!/bin/bash\n#SBATCH --mem=1G\ntrue"
    assert made(runner="slurm", command=script, memory="2GiB").command == script


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"runner": "pbs"}, "runner is 'pbs'; expected shell or slurm"),
        ({"directives": ["--mem=1G"]}, "set runner to slurm"),
        ({"runner": "slurm", "directives": ["--array=1-9"]}, "one task for each element"),
        ({"runner": "slurm", "directives": "--mem=1G"}, "expected a list or an object"),
        ({"runner": "slurm", "directives": [1]}, "NAME=VALUE"),
        ({"runner": "slurm", "command": None, "handler": "h"}, "has no command"),
        ({"runner": 1}, "expected a string"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_accepted(fields, said):
    with pytest.raises(InvalidTask, match=said):
        made(**fields)


def test_the_shell_is_what_a_command_has_anyway():
    assert made(runner="shell") == made()
