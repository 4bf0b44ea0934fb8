"""Workflows whose jobs Slurm runs, by the real program; nodes and workers are killed."""

import json
import random
import re
import shutil
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.audit import until_all_ended
from tests.support.patience import eventually, pace, scaled
from tests.support.run_crew import ended, run_crew, was_killed
from tests.support.slurm import NODES
from tidewheel.client import Client

EXAMPLE = Path(__file__).parents[2] / "examples" / "slurm"
PLATFORMS = """
[hpc]
runner = "slurm"
directives = {"--partition" = "main", "--mem" = 50, "--no-kill" = true}
"""
RUN_SECONDS_MAX = 90.0
ON_SLURM = """
        platform = hpc
"""


@contextmanager
def crew_with(slurm, folder):
    with run_crew(folder) as crew:
        crew.environment |= slurm.environment
        crew.home.mkdir(mode=0o700)
        (crew.home / "platforms.toml").write_text(PLATFORMS)
        yield crew


def job_file(crew, job, name):
    return crew.home / "runs" / "flow" / "run1" / "log" / "job" / job / name


def node_of(crew, name, submit="01"):
    """Where it runs, as soon as it has said so."""
    out = job_file(crew, f"1/{name}/{submit}", "job.out")
    return out.read_text().strip() if out.exists() else ""


def run_log(crew):
    return (crew.home / "runs/flow/run1/log/scheduler/log").read_text()


def test_a_cycling_workflow_runs_on_the_nodes_that_its_directives_name(slurm, tmp_path):
    graph = """
        P1 = '''
            prep => model_n1 & model_n2 & model_n3
            model_n1[-P1] => model_n1
            model_n1:half => early
            model_n1 & model_n2 & model_n3 => post
        '''
"""
    models = "".join(
        f"""
    [[model_{node}]]
        platform = hpc
        execution time limit = PT2M
        script = echo on $SLURMD_NODENAME; cylc message half; echo $SLURM_MEM_PER_NODE
        [[[directives]]]
            --nodelist = {node}
        [[[outputs]]]
            half = half
"""
        for node in NODES
    )
    post = """
    [[post]]
        [[[job]]]
            batch system = slurm
"""
    with crew_with(slurm, tmp_path) as crew:
        crew.define(graph, models + post, final=2)
        assert ended(crew.run(), RUN_SECONDS_MAX) == 0
        assert crew.judge()["succeed"] == 12
        for node in NODES:
            out = job_file(crew, f"2/model_{node}/01", "job.out").read_text()
            assert out.split("\n")[:3] == [f"on {node}", "50", ""]
        job = job_file(crew, "1/model_n1/01", "job").read_text().split("\n")
        assert job[:6] == [
            "#!/usr/bin/env bash",
            "#SBATCH --partition=main",
            "#SBATCH --mem=50",
            "#SBATCH --no-kill",
            "#SBATCH --nodelist=n1",
            "#SBATCH --time=2:00",
        ]
        assert (
            "runner_name=slurm" in job_file(crew, "2/post/01", "job.status").read_text().lower()
        )
        assert not job_file(crew, "1/prep/01", "job.slurm").exists()
        log = run_log(crew)
        assert "(received)submitted to Slurm as job" in log
        assert "[1/model_n1/01:running] (received)half" in log


def test_the_example_runs_on_slurm_by_one_command(slurm, tmp_path):
    with crew_with(slurm, tmp_path) as crew:
        shutil.copytree(EXAMPLE, tmp_path / "flow")
        run = crew.run()
        assert ended(run, RUN_SECONDS_MAX) == 0, run.log
        said = job_file(crew, "3/model_member2/01", "job.out").read_text()
        assert said.startswith("member 2 on n") and "boundary conditions of cycle 3" in said
        assert len(slurm.named("flow/run1/")) == 6


def test_a_node_dies_and_its_jobs_are_retried_elsewhere_or_have_failed_with_it(slurm, tmp_path):
    scripts = """
    [[keep, lose]]
        platform = hpc
        script = '''
            echo $SLURMD_NODENAME
            [[ $CYLC_TASK_TRY_NUMBER -gt 1 ]] || sleep 300
        '''
    [[keep]]
        execution retry delays = PT1S
    [[lose]]
        [[[directives]]]
            --nodelist = n2
"""
    with crew_with(slurm, tmp_path) as crew:
        crew.define("        R1 = keep & lose", scripts)
        run = crew.run("--stall-timeout", "0")
        dead = [eventually(lambda one=one: node_of(crew, one), one) for one in ("lose", "keep")]
        assert dead[0] == "n2"
        for node in set(dead):
            slurm.kill_node(node)
        assert ended(run, RUN_SECONDS_MAX) == 1
        assert node_of(crew, "keep", "02") in set(NODES) - set(dead)
        with Client(crew.store) as client:
            ends = [client.attempts(f"flow/run1/1/{one}/1")[0] for one in ("lose", "keep")]
        assert [end.error.code for end in ends] == ["node_fail", "node_fail"]
        for node, end in zip(dead, ends, strict=True):
            assert f"{node}: its node failed" in end.error.description
        assert dict(crew.final_state()["submissions"])["flow/run1/1/keep/2"] == "succeeded"


@pytest.mark.parametrize(
    "place", ["job_before_start", "job_spawned_before_record", "job_exited_before_report"]
)
def test_a_run_killed_around_a_submission_begins_no_slurm_job_twice(slurm, tmp_path, place):
    with crew_with(slurm, tmp_path) as crew:
        crew.define("        P1 = a[-P1] => a => b & c", "", root=ON_SLURM, final=2)
        assert was_killed(crew.run(TIDEWHEEL_FAILPOINT=f"{place}:3"))
        assert ended(crew.run(), RUN_SECONDS_MAX) == 0
        crew.judge()
        assert len(crew.executions()) == 6


def test_a_run_killed_at_any_moment_goes_on_with_its_slurm_jobs(slurm, tmp_path):
    with crew_with(slurm, tmp_path) as crew:
        script = "    [[root]]\n        script = sleep 1"
        crew.define("        P1 = a => b & c & d => e", script, root=ON_SLURM, final=2)
        for _ in range(scaled(2)):
            run = crew.run()
            pace(1 + 2 * random.random())
            run.kill()
        assert ended(crew.run(), RUN_SECONDS_MAX) == 0
        crew.judge()
        assert len(crew.executions()) == 10


def test_a_cycling_workflow_of_many_jobs_on_three_nodes_of_which_one_dies(slurm, tmp_path):
    """40 jobs, and 200 in a campaign of scale 5; a few of them fail by themselves, too.

    From the second point on, whoever is on n1 at the first try stays there until it dies.
    """
    points = scaled(4)
    graph = """
        P1 = '''
            begin[-P1] => begin => job<i> => end
            job<i>[-P1] => job<i>
        '''
"""
    root = """
        platform = hpc
        execution retry delays = 3*PT1S
        [[[directives]]]
            --cpus-per-task = 2
"""
    scripts = """
    [[job<i>]]
        script = '''
            cylc message part
            if [[ $CYLC_TASK_TRY_NUMBER == 1 ]]; then
                if [[ $SLURMD_NODENAME == n1 && $CYLC_TASK_CYCLE_POINT -gt 1 ]]; then
                    touch {doomed}
                    sleep 300
                fi
                [[ $CYLC_TASK_PARAM_i != 7 ]]
            fi
        '''
"""
    with crew_with(slurm, tmp_path) as crew:
        doomed = tmp_path / "doomed"
        crew.define(graph, scripts.replace("{doomed}", str(doomed)), root=root, final=points)
        definition = tmp_path / "flow" / "flow.cylc"
        definition.write_text(f"[task parameters]\n    i = 1..8\n{definition.read_text()}")
        run = crew.run()
        eventually(doomed.exists, slurm.told("one stays on n1"), RUN_SECONDS_MAX)
        slurm.kill_node("n1")
        assert ended(run, RUN_SECONDS_MAX + 5 * points) == 0
        state = crew.final_state()
        assert state["status"] == "completed"
        crew.judge()
        ids = [task_id for task_id, status in state["submissions"] if status == "succeeded"]
        assert len(ids) == 10 * points
        with crew.client() as client:
            failed = [task_id for task_id, status in state["submissions"] if status == "failed"]
            errors = [client.attempts(task_id)[-1].error for task_id in failed]
        assert any("n1: its node failed" in error.description for error in errors)
        parts = Counter(
            re.findall(r"\[(\d+/job_i\d+)/01:running\] \(received\)part", run_log(crew))
        )
        assert set(parts.values()) == {1}


def test_a_worker_waits_for_a_slurm_that_is_down_and_tells_so(slurm, tmp_path):
    with crew_with(slurm, tmp_path) as crew:
        slurm.kill_controller()
        worker = crew.start("worker", "--runner", "slurm")
        assert crew.ask("submit", "--runner", "slurm", "--id", "x", "--command", "true")[0] == 0
        worker.says("worker.unable")

        def trouble():
            [one] = json.loads(crew.ask("workers", "--json")[1])["workers"]
            return one["trouble"]

        assert "no job can be handed to Slurm" in eventually(trouble, "the trouble is told")
        slurm.start_controller()
        with crew.client() as client:
            assert until_all_ended(client, 1) == {"x": "succeeded"}
        assert eventually(lambda: not trouble(), "the trouble is over")


def test_a_job_that_stays_in_slurms_queue_says_why_and_goes_on_when_that_is_mended(
    slurm, tmp_path
):
    held = "    [[a]]\n        [[[directives]]]\n            --hold ="
    with crew_with(slurm, tmp_path) as crew:
        crew.define("        R1 = a", held, root=ON_SLURM)
        run = crew.run()
        eventually(lambda: "JobHeldUser" in crew.ask("why", "flow", "1/a")[1], "why tells it")
        said = crew.ask("why", "flow", "1/a")[1]
        job = slurm.only("flow/run1/1/a/")
        assert "1/a  submitted" in said, said
        assert f"scontrol release {job} releases it (needs action)" in said, said
        assert "    tidewheel kill flow/run1 1/a  # end its job\n" in said, said
        slurm.ask("scontrol", "release", job)
        assert ended(run, 55) == 0, run.log


def test_an_operator_kills_a_job_in_slurm(slurm, tmp_path):
    with crew_with(slurm, tmp_path) as crew:
        script = "    [[a]]\n        script = sleep 300"
        crew.define("        R1 = a", script, root=ON_SLURM)
        crew.run()
        eventually(crew.executions, "it has begun")
        assert crew.ask("kill", "flow", "1/a")[0] == 0
        eventually(
            lambda: set(slurm.named("flow/run1/1/a").values()) <= {"FAILED", "CANCELLED"},
            "Slurm has ended it",
        )
        eventually(lambda: "=> failed(held)" in run_log(crew), "the run knows")


def test_a_worker_that_leaves_its_jobs_in_slurm_is_followed_by_one_that_goes_on(
    slurm, tmp_path
):
    with crew_with(slurm, tmp_path) as crew:
        go = tmp_path / "go"
        command = f"{crew.noting('begin')}; while [ ! -e {go} ]; do sleep 0.1; done"
        crew.ask("queues", "default", "--lease", "1m")
        crew.ask("submit", "--runner", "slurm", "--id", "x", "--command", command)
        worker = crew.start("worker", "--runner", "slurm", "--leave")
        eventually(crew.executions, "it has begun")
        assert worker.end() == 0
        crew.start("worker", "--runner", "slurm").says("lease.adopted")
        go.touch()
        with crew.client() as client:
            assert until_all_ended(client, 1) == {"x": "succeeded"}
        assert len(crew.executions()) == 1


def test_a_worker_without_slurm_leaves_slurms_jobs_alone(slurm, tmp_path):
    with crew_with(slurm, tmp_path) as crew:
        crew.ask("queues", "default", "--lease", "1m")
        crew.ask("submit", "--runner", "slurm", "--id", "x", "--command", "sleep 5")
        first = crew.start("worker", "--runner", "slurm")
        eventually(lambda: "RUNNING" in slurm.named("x").values(), "it runs")
        first.kill()
        crew.start("worker").says("worker.registered")
        crew.start("worker", "--runner", "slurm").says("lease.adopted")
        with crew.client() as client:
            assert until_all_ended(client, 1) == {"x": "succeeded"}
            assert len(client.attempts("x")) == 1
