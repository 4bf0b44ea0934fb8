"""A submission to Slurm happens once, whoever dies and whatever answer is lost."""

import asyncio

import pytest

from tests.support.slurm_stage import (
    SECONDS_MAX,
    end_of,
    faulty_sbatch,
    open_stage,
    play,
    until,
    until_begun,
)
from tidewheel.core.queue.requests import Ending
from tidewheel.errors import RunnerUnable
from tidewheel.runners.slurm.job import make_void, read_record

TIMED_OUT = (
    "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
)
LASTS = "echo begun >> ../../begun; while [ ! -e ../../go ]; do sleep 0.05; done; echo all said"


def begun(home):
    path = home / "tasks" / "begun"
    return path.read_text().split() if path.exists() else []


def let_go(home):
    (home / "tasks" / "go").touch()


def test_a_job_whose_worker_died_is_adopted_and_not_begun_again(slurm, tmp_path):
    async def scenario():
        async with open_stage(slurm, tmp_path) as first:
            job = await first.start(LASTS)
            await until_begun(job, lambda: begun(tmp_path), slurm)
        async with open_stage(slurm, tmp_path) as second:
            job = await second.adopt(LASTS)
            let_go(tmp_path)
            assert (await end_of(job)).ending is Ending.SUCCEEDED
            assert second.reports.starts == 1

    asyncio.run(scenario())
    assert begun(tmp_path) == ["begun"]
    assert len(slurm.named("task-1")) == 1


@pytest.mark.req("R004-62")
@pytest.mark.parametrize("command", [LASTS, f"#SBATCH --hold\n{LASTS}"], ids=["runs", "waits"])
def test_a_job_whose_lease_is_over_is_found_and_ended_by_whoever_starts_next(
    slurm, tmp_path, command
):
    async def own(stage, store=""):
        found = await stage.runner.leftovers(store)
        return [one for one in found if str(tmp_path) in one.name]

    async def scenario():
        async with open_stage(slurm, tmp_path) as first:
            await first.start(command)
            if command == LASTS:
                await until(lambda: begun(tmp_path), "it has begun")
        async with open_stage(slurm, tmp_path) as second:
            async with asyncio.timeout(SECONDS_MAX):
                while not (found := await own(second)):  # Slurm may be slow to answer
                    pass
            [left] = found
            assert (left.task_id, left.attempt) == ("task-1", 1)
            assert await own(second, "of another store") == []
            await second.runner.remove(left)
            await until(
                lambda: set(slurm.named("task-1").values()) <= {"CANCELLED", "FAILED"},
                "Slurm has ended it",
            )
            assert await own(second) == []

    asyncio.run(scenario())


def test_a_job_that_waits_in_slurms_queue_is_adopted(slurm, tmp_path):
    command = f"#SBATCH --hold\n{LASTS}"

    async def scenario():
        async with open_stage(slurm, tmp_path) as first:
            await first.start(command)
        async with open_stage(slurm, tmp_path) as second:
            job = await second.adopt(command)
            let_go(tmp_path)
            slurm.ask("scontrol", "release", *slurm.named("task-1"))
            assert (await end_of(job)).ending is Ending.SUCCEEDED

    asyncio.run(scenario())
    assert begun(tmp_path) == ["begun"]


def test_a_job_that_ended_while_nobody_watched_is_adopted_with_its_end(slurm, tmp_path):
    async def scenario():
        async with open_stage(slurm, tmp_path) as first:
            await first.start("exit 7")
        await until(lambda: set(slurm.named("task-1").values()) == {"FAILED"}, "it has ended")
        async with open_stage(slurm, tmp_path) as second:
            end = await end_of(await second.adopt("exit 7"))
            assert end.ending is Ending.FAILED
            assert end.exit_status == 7

    asyncio.run(scenario())


def test_what_a_job_said_is_told_again_from_the_first_to_whoever_adopts_it(slurm, tmp_path):
    command = f"tidewheel message one; {LASTS}; tidewheel message two"

    async def scenario():
        async with open_stage(slurm, tmp_path) as first:
            job = await first.start(command)
            await first.reports.until(lambda said: said.messages)
            await until_begun(job, lambda: begun(tmp_path), slurm)
        async with open_stage(slurm, tmp_path) as second:
            job = await second.adopt(command)
            let_go(tmp_path)
            await end_of(job)
            assert second.reports.messages == [("one", None), ("two", None)]

    asyncio.run(scenario())


def test_a_submission_whose_answer_was_lost_is_found_again(slurm, tmp_path):
    text = f'"$SBATCH" "$@" > /dev/null; echo "{TIMED_OUT}" >&2; exit 1'

    async def scenario(stage):
        let_go(tmp_path)
        assert (await stage.run(LASTS)).ending is Ending.SUCCEEDED

    (tmp_path / "tasks").mkdir()
    play(slurm, tmp_path, scenario, faulty_sbatch(tmp_path / "programs", text))
    assert begun(tmp_path) == ["begun"]
    assert len(slurm.named("task-1")) == 1


@pytest.mark.parametrize("fault", [f'echo "{TIMED_OUT}" >&2; exit 1', "kill -9 $$"])
def test_a_submission_that_never_arrived_goes_back_and_can_never_begin(slurm, tmp_path, fault):
    async def scenario(stage):
        assert (await stage.run(LASTS)).ending is Ending.YIELDED
        assert read_record(stage.assignment(stage.task(LASTS)).directory).is_void

    play(slurm, tmp_path, scenario, faulty_sbatch(tmp_path / "programs", fault))
    assert slurm.named("task-1") == {}


def test_a_submission_that_was_given_up_runs_nothing_if_it_comes_late(slurm, tmp_path):
    command = f"#SBATCH --hold\n{LASTS}"

    async def scenario(stage):
        job = await stage.start(command)
        directory = stage.assignment(stage.task(command)).directory
        make_void(directory, read_record(directory))
        slurm.ask("scontrol", "release", *slurm.named("task-1"))
        end = await end_of(job)
        assert end.ending is Ending.FAILED
        assert end.error.code == "start"

    play(slurm, tmp_path, scenario)
    assert begun(tmp_path) == []


def test_nothing_is_adopted_that_was_given_up(slurm, tmp_path):
    async def scenario(stage):
        await stage.start(f"#SBATCH --hold\n{LASTS}")
        directory = stage.assignment(stage.task(LASTS)).directory
        make_void(directory, read_record(directory))
        assert await stage.adopt(LASTS) is None

    play(slurm, tmp_path, scenario)


def test_a_later_attempt_ends_what_an_earlier_one_left_in_slurm(slurm, tmp_path):
    """The host of the first worker is gone: its lease lapsed, and its job runs on."""

    async def scenario():
        async with open_stage(slurm, tmp_path) as first:
            job = await first.start(LASTS)
            await until_begun(job, lambda: begun(tmp_path), slurm)
        async with open_stage(slurm, tmp_path) as second:
            job = await second.start(LASTS, attempt=2)
            await until_begun(job, lambda: len(begun(tmp_path)) == 2, slurm)
            await until(
                lambda: sorted(slurm.named("task-1").values()) == ["CANCELLED", "RUNNING"],
                "the first has ended",
            )
            let_go(tmp_path)
            assert (await end_of(job)).ending is Ending.SUCCEEDED

    asyncio.run(scenario())


def test_where_slurm_is_not_there_nothing_has_failed(slurm, tmp_path):
    text = (
        "echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller "
        "(connect failure)' >&2; exit 1"
    )

    async def scenario(stage):
        with pytest.raises(RunnerUnable, match="Unable to contact slurm controller"):
            await stage.start("true")

    play(slurm, tmp_path, scenario, faulty_sbatch(tmp_path / "programs", text))


def test_what_slurm_refuses_has_failed_in_slurms_own_words(slurm, tmp_path):
    async def scenario(stage):
        end = await stage.run("#SBATCH --partition=nowhere\ntrue")
        assert end.ending is Ending.FAILED
        assert end.error.code == "start"
        assert "invalid partition specified: nowhere" in end.error.description
        assert stage.reports.starts == 0

    play(slurm, tmp_path, scenario)


def test_a_fenced_task_is_refused_since_slurm_jobs_outlive_their_worker(slurm, tmp_path):
    async def scenario(stage):
        end = await stage.run("true", fence_kill=True)
        assert "is fenced" in end.error.description

    play(slurm, tmp_path, scenario)
    assert slurm.named("task-1") == {}


@pytest.mark.parametrize("line", ["--array=1-3", "--arr=1-3", "-a1-3", "--wait", "hetjob"])
def test_directives_that_make_more_or_less_than_one_job_are_refused(slurm, tmp_path, line):
    async def scenario(stage):
        end = await stage.run(f"#SBATCH {line}\ntrue")
        assert end.error.code == "start"
        assert "is not accepted here" in end.error.description

    play(slurm, tmp_path, scenario)
    assert slurm.named("task-1") == {}
