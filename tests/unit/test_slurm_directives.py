"""What a command says to Slurm, and what nobody can make it say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.queue.resources import Resources
from tidewheel.runners.slurm.directives import (
    directive_lines,
    head_lines,
    names_of,
    refusal,
    resource_directives,
    with_directives,
)


def test_directives_are_written_as_sbatch_reads_them():
    said = {"--mem": "2G", "-p": "main", "--exclusive": "", "nodes": "2", "--comment": "a b"}
    assert directive_lines(said.items()) == [
        "#SBATCH --mem=2G",
        "#SBATCH -p main",
        "#SBATCH --exclusive",
        "#SBATCH --nodes=2",
        '#SBATCH --comment="a b"',
    ]


@given(st.text(), st.text())
def test_no_name_and_no_value_makes_a_line_of_its_own(name, value):
    [line] = directive_lines([(name, value)])
    assert line.startswith("#SBATCH ")
    assert "\n" not in line


def test_directives_stand_at_the_head_of_a_command():
    command = "#!/bin/bash\n# a comment\n#SBATCH --mem=1G\n\n#SBATCH -t 5\necho\n#SBATCH --late"
    assert head_lines(command) == ["#SBATCH --mem=1G", "#SBATCH -t 5"]


def test_what_is_added_stands_before_the_commands_own_directives_which_count_more():
    command = "#!/bin/bash\n#SBATCH --mem=1G\ntrue"
    assert with_directives(command, [("--mem", "9G")]).split("\n") == [
        "#!/bin/bash",
        "#SBATCH --mem=9G",
        "#SBATCH --mem=1G",
        "true",
    ]
    assert with_directives("true", [("--mem", "9G")]) == "#SBATCH --mem=9G\ntrue"
    assert with_directives("true", []) == "true"


@pytest.mark.slow
@given(st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=3))
def test_a_command_does_the_same_with_directives(command, directives):
    lines = with_directives(command, directives).split("\n")
    assert [one for one in lines if not one.startswith("#")] == [
        one for one in command.split("\n") if not one.startswith("#")
    ]


def test_resources_become_directives_where_none_are_given():
    asked = Resources(cpu=2.5, memory_bytes=3 * 2**30 + 1, gpu=2)
    assert resource_directives(asked, 90.0) == (
        ("--cpus-per-task", "3"),
        ("--mem", "3073M"),
        ("--gres", "gpu:2"),
        ("--time", "1:30"),
    )
    alone = Resources(nodes=3, exclusive=True)
    assert resource_directives(alone, None) == (("--nodes", "3"), ("--exclusive", ""))
    assert resource_directives(alone, None, names_of(["#SBATCH -N2 --exclusive=user"])) == ()
    assert resource_directives(Resources(), None) == ()
    given_names = names_of(["#SBATCH -c 8 --mem-per-cpu=1G", "#SBATCH --gpus=1", "#SBATCH -t5"])
    assert resource_directives(asked, 90.0, given_names) == ()


@pytest.mark.parametrize(
    "line", ["--array=1-3", "--arra 1-3", "-a1-3", "-W", "--wait", "--clusters=x", "hetjob"]
)
def test_directives_that_make_more_than_one_job_are_refused(line):
    assert "is not accepted here" in refusal(["#SBATCH --mem=1G", f"#SBATCH {line}"])


@pytest.mark.parametrize(
    "line",
    [
        *("--account=x", "--wait-all-nodes=1", "-A x", "--mem=1G"),
        *('--comment="no --array here"', "--comment='x --wait' --mem=1G", '--comment="torn'),
    ],
)
def test_other_directives_are_slurms_business(line):
    assert refusal([f"#SBATCH {line}"]) == ""
