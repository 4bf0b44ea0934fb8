"""Jobs of a real run call their run: commands, looks, and who is allowed to."""

import pytest

from tests.support.command_line import CommandLine

FLOW = """
[scheduler]
    allow implicit tasks = True
    {scheduler}
    [[events]]
        stall timeout = PT0S
[scheduling]
    [[graph]]
        R1 = {graph}
[runtime]
    [[a]]
        {item} = \"\"\"{script}\"\"\"
"""


@pytest.fixture
def flow(tidewheel: CommandLine):
    def write(script, *, graph="a => b", scheduler="", item="script"):
        folder = tidewheel.folder / "tide"
        folder.mkdir()
        text = FLOW.format(script=script, graph=graph, scheduler=scheduler, item=item)
        (folder / "flow.cylc").write_text(text)
        return folder

    return write


def job_file(tidewheel, task, name, submit="01"):
    return (tidewheel.state / "runs/tide/run1/log/job" / task / submit / name).read_text()


def test_a_job_changes_its_run_and_is_named_for_it(tidewheel, flow):
    flow("cylc trigger $CYLC_WORKFLOW_ID//1/c && tidewheel set 1/d", graph="a => b => c & d")
    assert tidewheel("run", "tide").status == 0
    history = tidewheel("show", "tide/run1", "--history", "--json").out
    assert history.count("job 1/a/01") == 2
    assert "exit=0" in job_file(tidewheel, "1/a", "job.status")


def test_a_job_can_look(tidewheel, flow):
    flow("cylc workflow-state $CYLC_WORKFLOW_ID//1/a:started --max-polls=1; tidewheel show 1/b")
    assert tidewheel("run", "tide").status == 0
    assert job_file(tidewheel, "1/a", "job.out").startswith("1/a:running\n")


def test_commands_of_jobs_can_be_forbidden(tidewheel, flow):
    stop = "cylc message hello; cylc stop $CYLC_WORKFLOW_ID"
    flow(stop, scheduler="job commands = False")
    assert tidewheel("run", "tide").status == 1
    assert "job commands = True" in job_file(tidewheel, "1/a", "job.err")


def test_an_init_script_holds_back_the_start(tidewheel, flow):
    wait = "cylc workflow-state $CYLC_WORKFLOW_ID//1/a:submitted --interval=0.1"
    flow(wait, graph="a:start => b", item="init-script")
    assert tidewheel("run", "tide").status == 0
    assert "exit=0" in job_file(tidewheel, "1/b", "job.status")


def test_the_log_of_a_submission_is_found_as_that_of_any_task(tidewheel, flow):
    flow("echo hello from a")
    assert tidewheel("run", "tide").status == 0
    assert tidewheel("task", "tide/run1/1/a/1", "--log", "out").out == "hello from a\n"
