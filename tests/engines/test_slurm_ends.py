"""How Slurm jobs end, and what a person is told about it at three in the morning."""

import pytest

from tests.support.slurm import MEMORY_CGROUP, slurm_cluster
from tests.support.slurm_stage import end_of, play, until, until_begun
from tidewheel.core.queue.requests import Ending
from tidewheel.core.queue.resources import Resources
from tidewheel.runners.slurm.directives import RUNNER_LABEL

LASTS = "touch ../../begun; sleep 300"


def has_begun(home):
    return (home / "tasks" / "begun").exists


@pytest.mark.skipif(
    not MEMORY_CGROUP.exists(),
    reason="Slurm limits memory by cgroup v1, which this machine does not have",
)
@pytest.mark.usefixtures("slurm")  # there is one at all
def test_a_job_that_uses_too_much_memory_says_so(tmp_path):
    hungry = """#SBATCH --mem=60
python3 -c 'x = bytearray(400 * 1024 * 1024)'"""

    async def scenario(stage):
        end = await stage.run(hungry)
        assert end.ending is Ending.FAILED
        assert end.error.code == "out_of_memory"
        assert "more memory than it had asked for" in end.error.description
        assert "--mem" in end.error.description

    with slurm_cluster(limits_memory=True) as limited:
        play(limited, tmp_path, scenario)


def test_a_job_that_runs_too_long_is_ended_by_slurm_and_says_so(slurm, tmp_path):
    async def scenario(stage):
        job = await stage.start(f"#SBATCH --time=1\n{LASTS}")
        await until_begun(job, has_begun(tmp_path), slurm)
        # Slurm counts in minutes: an administrator shortens what is left. It refuses a time
        # that has passed when it hears of it.
        slurm.ask("scontrol", "update", f"JobId={slurm.only('task-1')}", "EndTime=now+3")
        end = await end_of(job)
        assert end.ending is Ending.ABORTED
        assert end.error.code == "timed_out"
        assert "longer than its time limit" in end.error.description

    play(slurm, tmp_path, scenario)


def test_a_job_that_somebody_cancelled_in_slurm_says_that_it_was_not_us(slurm, tmp_path):
    async def scenario(stage):
        job = await stage.start(LASTS)
        await until_begun(job, has_begun(tmp_path), slurm)
        slurm.ask("scancel", slurm.only("task-1"))
        end = await end_of(job)
        assert end.error.code == "cancelled"
        assert "tidewheel did not" in end.error.description

    play(slurm, tmp_path, scenario)


def test_a_job_that_leaves_with_status_0_when_it_is_cancelled_has_not_done_its_work(
    slurm, tmp_path
):
    async def scenario(stage):
        job = await stage.start("trap 'exit 0' TERM; touch ../../begun; sleep 300 & wait")
        await until_begun(job, has_begun(tmp_path), slurm)
        slurm.ask("scancel", slurm.only("task-1"))
        end = await end_of(job)
        assert end.error.code == "cancelled"
        assert end.exit_status == 0

    play(slurm, tmp_path, scenario)


def test_a_job_that_was_cancelled_before_it_began_was_never_started(slurm, tmp_path):
    async def scenario(stage):
        job = await stage.start(f"#SBATCH --hold\n{LASTS}")
        slurm.ask("scancel", slurm.only("task-1"))
        end = await end_of(job)
        assert end.error.code == "start"
        assert stage.reports.starts == 0

    play(slurm, tmp_path, scenario)


def test_a_job_that_waits_is_stopped_without_ever_running(slurm, tmp_path):
    async def scenario(stage):
        job = await stage.start(f"#SBATCH --hold\n{LASTS}")
        await job.stop(10)
        end = await end_of(job)
        assert end.ending is Ending.FAILED
        assert not has_begun(tmp_path)()

    play(slurm, tmp_path, scenario)


def test_a_job_that_kills_itself_and_all_around_it_is_told_by_its_signal(slurm, tmp_path):
    async def scenario(stage):
        end = await stage.run("kill -9 $PPID $$")
        assert end.ending is Ending.FAILED
        assert end.error.code == "signal"
        assert end.exit_status == -9

    play(slurm, tmp_path, scenario)


def test_no_job_is_declared_dead_because_slurm_is_down(slurm, tmp_path):
    async def scenario(stage):
        job = await stage.start(
            "touch ../../begun; while [ ! -e ../../go ]; do sleep 0.1; done"
        )
        await until_begun(job, has_begun(tmp_path), slurm)
        slurm.kill_controller()
        await until(lambda: stage.troubles, "the trouble is told")
        assert "Slurm does not answer" in stage.troubles[0]
        (tmp_path / "tasks" / "go").touch()
        slurm.start_controller()
        assert (await end_of(job)).ending is Ending.SUCCEEDED
        assert stage.troubles[-1] is None

    play(slurm, tmp_path, scenario)


def test_a_job_on_a_node_that_does_not_reach_the_worker_is_heard_through_its_files(
    slurm, tmp_path
):
    command = """export TIDEWHEEL_SOCKET=/nowhere
tidewheel message first; tidewheel message --output half; tidewheel message last"""

    async def scenario(stage):
        end = await stage.run(command)
        assert end.ending is Ending.SUCCEEDED
        assert stage.reports.messages == [("first", None), ("", "half"), ("last", None)]

    play(slurm, tmp_path, scenario)


def test_what_a_job_asks_for_is_asked_of_slurm(slurm, tmp_path):
    asked = Resources(cpu=1.5, memory_bytes=70 * 2**20, labels=frozenset({RUNNER_LABEL}))

    async def scenario(stage):
        end = await stage.run("echo $SLURM_CPUS_PER_TASK $SLURM_MEM_PER_NODE", resources=asked)
        assert end.ending is Ending.SUCCEEDED
        directory = stage.assignment(stage.task("")).directory
        assert (directory / "job.out").read_text() == "2 70\n"
        assert "cpu_seconds" in end.metrics

    play(slurm, tmp_path, scenario)


def test_a_job_finds_what_it_was_told_and_nothing_of_its_workers_secrets(
    slurm, tmp_path, monkeypatch
):
    monkeypatch.setenv("TIDEWHEEL_STORE", "postgresql://user:password@host/db")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")

    async def scenario(stage):
        await stage.run("env; umask; ls -l job.environment")
        directory = stage.assignment(stage.task("")).directory
        said = (directory / "job.out").read_text()
        assert "TIDEWHEEL_TASK_ID=task-1" in said
        assert "TIDEWHEEL_JOB_RUNNER=slurm" in said
        assert "password" not in said
        assert "AWS_SECRET_ACCESS_KEY" not in said
        assert "\n0077\n-rw------- " in said

    play(slurm, tmp_path, scenario)


def test_nothing_that_a_task_is_called_or_asks_for_is_executed(slurm, tmp_path):
    evil = '$(touch ../../evil) `touch ../../evil`; touch ../../evil\n--wrap="touch evil" %j |'

    async def scenario(stage):
        end = await stage.run(
            "#SBATCH --comment=$(touch${IFS}../../evil)\necho done", name=evil, id=evil
        )
        assert end.ending is Ending.SUCCEEDED

    play(slurm, tmp_path, scenario)
    assert not (tmp_path / "tasks" / "evil").exists()
