"""Where a job of a run goes: `platform`, `[directives]`, `[job] batch system`."""

import socket
from dataclasses import replace

import pytest

from tests.kit.scenario import compile_graph
from tests.support.run_jobs import job_facts, node, run_facts
from tidewheel.config import WorkerSettings
from tidewheel.core.graph.definition import NodePlace
from tidewheel.core.graph.findings import Findings, Severity
from tidewheel.core.queue.resources import Resources
from tidewheel.errors import BadSetting
from tidewheel.platforms import Platform, read_platforms
from tidewheel.scheduler.placement import check_places
from tidewheel.scheduler.submissions import JobWriter

HPC = Platform(
    name="hpc",
    runner="slurm",
    labels=("cluster:a",),
    directives=(("--partition", "main"), ("--mem", "1G")),
)
BIG = Platform(name="big", labels=("bigmem",))
PLATFORMS = {"hpc": HPC, "big": BIG}


def task_of(*, run=None, limit=None, **place):
    there = node(place=NodePlace(**place), time_limit_seconds=limit)
    return JobWriter(run or run_facts(), PLATFORMS).new_task(there, job_facts())


def head(task):
    return [line for line in task.command.split("\n") if line.startswith("#SBATCH")]


def test_a_platform_of_slurm_asks_for_a_worker_with_that_runner():
    task = task_of(platform="hpc", directives=(("--mem", "2G"), ("--exclusive", "")))
    assert task.resources.labels == {"runner:slurm", "cluster:a"}
    assert head(task) == [
        "#SBATCH --partition=main",
        "#SBATCH --mem=2G",
        "#SBATCH --exclusive",
    ]
    assert task.command.split("\n")[1] == "#SBATCH --partition=main"


@pytest.mark.parametrize("place", [{"batch_system": "slurm"}, {"platform": "slurm"}])
def test_slurm_is_known_by_its_name_without_any_file(place):
    task = task_of(directives=(("-p", "main"),), **place)
    assert task.resources.labels == {"runner:slurm"}
    assert head(task) == ["#SBATCH -p main"]


def test_slurm_counts_the_time_limit_from_when_the_job_begins():
    task = task_of(platform="hpc", limit=600.0)
    assert task.timeout_seconds is None
    assert "#SBATCH --time=10:00" in head(task)
    own = task_of(platform="hpc", limit=600.0, directives=(("--time", "3"),))
    assert "#SBATCH --time=3" in head(own)
    assert "#SBATCH --time=10:00" not in head(own)


def test_a_platform_may_be_nothing_but_labels():
    task = task_of(platform="big", limit=60.0)
    assert task.resources.labels == {"bigmem"}
    assert task.timeout_seconds == 60.0
    assert head(task) == []


HERE = [
    {},
    {"platform": "localhost"},
    {"platform": "$HOSTNAME"},
    {"remote_host": "${HOSTNAME}"},
    {"remote_host": "$(hostname -f)"},
    {"remote_host": socket.gethostname()},
    {"batch_system": "background"},
]
NOWHERE = [{"platform": "moon"}, {"remote_host": "moon"}, {"batch_system": "moon"}]


@pytest.mark.parametrize("place", HERE)
def test_names_of_this_machine_are_where_the_runs_workers_are(place):
    task = task_of(directives=(("--mem", "2G"),), **place)
    assert task.resources.labels == frozenset()
    assert head(task) == []
    assert not found_wrong(place)


@pytest.mark.parametrize("place", NOWHERE)
def test_a_place_that_nobody_described_is_an_error_and_no_worker_offers_it(place):
    (message,) = found_wrong(place)
    assert "= moon of model is not known" in message
    (label,) = task_of(**place).resources.labels
    assert label.endswith(":moon")


@pytest.mark.parametrize("place", [{"remote_host": "hpc"}, {"batch_system": "hpc"}])
def test_a_host_or_batch_system_of_cylc_7_may_be_described_as_a_platform(place):
    assert not found_wrong(place)
    assert task_of(**place).resources.labels == {"runner:slurm", "cluster:a"}


def test_the_nearest_place_is_offered():
    findings = Findings()
    check_places(graph_with({"platform": "hcp"}), PLATFORMS, findings)
    (finding,) = findings
    assert "known platforms: localhost, slurm, hpc, big; did you mean hpc?" in finding.hint


def found_wrong(place):
    findings = Findings()
    check_places(graph_with(place), PLATFORMS, findings)
    assert all(one.severity is Severity.ERROR for one in findings)
    return [one.message for one in findings]


def graph_with(place):
    graph = compile_graph("model", "[[model]]")
    asking = replace(graph.nodes["model"].definition, place=NodePlace(**place))
    return replace(graph, nodes={"model": replace(graph.nodes["model"], definition=asking)})


def test_a_dummy_job_goes_nowhere():
    task = task_of(run=run_facts(dummy=True), platform="hpc")
    assert task.resources.labels == frozenset()


def test_platforms_are_read_from_the_state_directory(tmp_path):
    assert read_platforms(tmp_path) == {}
    (tmp_path / "platforms.toml").write_text(
        '[hpc]\nrunner = "slurm"\nlabels = ["cluster:a"]\n'
        'directives = {"--partition" = "main", "--nodes" = 2, "--exclusive" = true}\n[here]\n'
    )
    said = (("--partition", "main"), ("--nodes", "2"), ("--exclusive", ""))
    assert read_platforms(tmp_path) == {
        "hpc": Platform(name="hpc", runner="slurm", labels=("cluster:a",), directives=said),
        "here": Platform(name="here"),
    }


@pytest.mark.parametrize(
    "text",
    ["nonsense", "hpc = 1", '[hpc]\nrunner = "pbs"', "[hpc]\nhost = 1", "[hpc]\nlabels = 1"],
)
def test_a_file_of_platforms_that_is_wrong_is_refused_with_what_would_be_accepted(
    tmp_path, text
):
    (tmp_path / "platforms.toml").write_text(text)
    with pytest.raises(BadSetting, match="expected"):
        read_platforms(tmp_path)


def test_jobs_of_slurm_cannot_be_tied_to_their_worker():
    with pytest.raises(BadSetting, match="do not end with their worker"):
        WorkerSettings(name="w", tie_jobs=True, runners=("slurm",))


def test_only_a_worker_with_a_runner_offers_its_label():
    with pytest.raises(BadSetting, match="--runner slurm adds it"):
        WorkerSettings(name="w", capacity=Resources(labels=frozenset({"runner:slurm"})))
