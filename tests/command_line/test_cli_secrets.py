"""`secret:NAME` in workflows and tasks, as somebody who types commands sees it."""

import os
from pathlib import Path
from textwrap import dedent

import pytest

VALUE = "hunter2-is-not-a-password"


@pytest.fixture
def secrets(tmp_path):
    folder = tmp_path / "secrets"
    put(folder, "team-a/db", VALUE)
    put(folder, "shared", "for-everybody-here")
    return folder


def put(folder, name, value):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(f"{value}\n")


def flow(tidewheel, runtime, graph="R1 = a", name="flow"):
    folder = tidewheel.folder / name
    folder.mkdir()
    text = f"""\
        [scheduler]
            [[events]]
                stall timeout = PT0S
                abort on stall timeout = True
        [scheduling]
            [[graph]]
                {graph}
        [runtime]
        """
    (folder / "flow.cylc").write_text(dedent(text) + dedent(runtime))
    return str(folder)


def found_in(folder, *values):
    return [
        os.path.join(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if os.path.isfile(os.path.join(place, name))
        and any(one.encode() in Path(place, name).read_bytes() for one in values)
    ]


RUNTIME = """\
    [[a]]
        script = '''
            echo "url is $URL"
            cylc message "it is $PASSWORD"
            test "$PASSWORD" = hunter2-is-not-a-"password"
        '''
        [[[environment]]]
            PASSWORD = secret:team-a/db
            URL = postgres://me:$PASSWORD@host
"""


def test_a_task_of_a_workflow_has_a_secret_and_nobody_else_reads_it(tidewheel, secrets):
    folder = flow(tidewheel, RUNTIME)
    assert tidewheel("validate", folder).status == 0
    assert "hunter2" not in tidewheel("rehearse", folder).out
    ran = tidewheel("run", folder, "--name", "team-a/x", "--secrets", str(secrets))
    assert ran.status == 0, ran
    assert tidewheel("log", "team-a/x", "1/a").out == "url is postgres://me:***@host\n"
    assert "(received)it is ***" in tidewheel("log", "team-a/x").out
    task = tidewheel("task", "team-a/x/1/a/1")
    assert "PASSWORD=secret:team-a/db" in task.out
    assert tidewheel("task", "team-a/x/1/a/1", "--json").json["task"]["environment"] == {
        "PASSWORD": "secret:team-a/db"
    }
    assert found_in(tidewheel.state, VALUE) == []


@pytest.mark.parametrize("mode", ["simulation", "dummy", "skip"])
def test_a_run_without_its_jobs_needs_no_secret(tidewheel, mode):
    folder = flow(
        tidewheel, RUNTIME + "        [[[simulation]]]\n            default run length = PT0S\n"
    )
    ran = tidewheel("run", folder, "--name", "x", "--mode", mode)
    assert ran.status == 0, ran


def test_a_job_without_its_secret_is_not_started_and_everybody_is_told_why(tidewheel, secrets):
    folder = flow(tidewheel, RUNTIME)
    ran = tidewheel("run", folder, "--name", "team-b/x", "--secrets", str(secrets))
    assert ran.status == 1
    why = "secret:team-a/db is only for names under team-a, and this run is team-b/x"
    assert why in tidewheel("why", "team-b/x", "1/a").out
    assert why in tidewheel("log", "team-b/x").out
    assert why in tidewheel("log", "team-b/x", "1/a", "--err").out
    assert why in tidewheel("task", "team-b/x/1/a/1").out
    assert "1/a submit-failed" in tidewheel("log", "team-b/x").out


def test_a_missing_secret_is_looked_for_again_as_submissions_are_retried(tidewheel, secrets):
    runtime = f"""\
    [[a]]
        submission retry delays = 30*PT1S
        script = test "$S" = later-there
        [[[environment]]]
            S = secret:later
    [[make]]
        script = sleep 1; cp {secrets}/shared {secrets}/later
    """
    folder = flow(tidewheel, runtime, "R1 = a & make")
    put(secrets, "shared", "later-there")
    ran = tidewheel("run", folder, "--name", "x", "--secrets", str(secrets))
    assert ran.status == 0, tidewheel("log", "x").out
    assert "there is no secret secret:later on this worker" in tidewheel("log", "x").out


BAD = """\
    [[a]]
        script = true
        [[[environment]]]
            GOOD = secret:team-a/db
            BAD = secret:../../etc/shadow
    [[b]]
        platform = slurm
        [[[environment]]]
            GOOD = secret:team-a/db
"""


def test_a_definition_with_secrets_that_cannot_be_given_is_not_valid(tidewheel):
    folder = flow(tidewheel, BAD, "R1 = a => b")
    told = tidewheel("validate", folder)
    assert told.status != 0
    assert "[a][environment]BAD: 'secret:../../etc/shadow' is not a reference to a secret" in (
        told.out + told.err
    )
    assert "[b][environment]GOOD: Slurm would store a secret as plain text" in (
        told.out + told.err
    )
    assert "GOOD: '" not in (told.out + told.err)


BROADCASTS = """\
    [[a]]
        script = '''
            cylc broadcast $CYLC_WORKFLOW_ID -n b -s '[environment]S=secret:team-a/db'
            cylc broadcast $CYLC_WORKFLOW_ID -n b -s '[environment]S=secret:../x' && exit 1
            cylc broadcast $CYLC_WORKFLOW_ID -n b -s '[environment]T=secret:team-b/x' -p 7
        '''
    [[b]]
        script = test "$S" = hunter2-is-not-a-"password" && echo "it is $S"
"""


def test_a_secret_can_be_broadcast_by_reference(tidewheel, secrets):
    folder = flow(tidewheel, BROADCASTS, "R1 = a => b")
    ran = tidewheel("run", folder, "--name", "team-a/x", "--secrets", str(secrets))
    assert ran.status == 0, (ran, tidewheel("log", "team-a/x", "1/a", "--err"))
    assert "is not a reference to a secret" in tidewheel("log", "team-a/x", "1/a", "--err").out
    assert tidewheel("log", "team-a/x", "1/b").out == "it is ***\n"
    assert found_in(tidewheel.state, VALUE) == []


def test_a_result_of_an_xtrigger_is_never_a_reference(tidewheel, secrets):
    runtime = """\
    [[b]]
        script = echo "$x_S"
    """
    folder = flow(tidewheel, runtime, "R1 = @x => b")
    text = (Path(folder) / "flow.cylc").read_text()
    xtrigger = "    [[xtriggers]]\n        x = echo(succeed=True, S='secret:team-a/db')\n"
    text = text.replace("    [[graph]]\n", xtrigger + "    [[graph]]\n")
    (Path(folder) / "flow.cylc").write_text(text)
    ran = tidewheel("run", folder, "--name", "team-a/x", "--secrets", str(secrets))
    assert ran.status == 0, ran
    assert tidewheel("log", "team-a/x", "1/b").out == "secret:team-a/db\n"


def test_a_workflow_in_python_may_name_a_secret(tidewheel, secrets, tmp_path):
    file = tmp_path / "tide.py"
    file.write_text(
        dedent("""\
        from tidewheel import Workflow
        flow = Workflow("tide", initial=1, final=1)
        with flow.cycle("R1"):
            a = flow.task("a", script='echo "$S"', environment={"S": "secret:shared"})
            a >> flow.task("b", script="true")
        """)
    )
    ran = tidewheel("run", str(file), "--name", "x", "--secrets", str(secrets))
    assert ran.status == 0, ran
    assert tidewheel("log", "x", "1/a").out == "***\n"


def test_a_command_of_the_worker_finds_secrets_and_a_bad_folder_is_refused(tidewheel, tmp_path):
    submitted = tidewheel("submit", "--env", "S=secret:k", "--command", 'echo "$S"; echo ${#S}')
    printed = "--secrets-command", "printf %s-%s from-a-command"
    assert tidewheel("worker", "--once", *printed).status == 0
    [log] = tidewheel.state.glob("tasks/*/*/1/job.out")
    assert log.read_text() == f"***\n{len('from-a-command-k')}\n"
    assert "S=secret:k" in tidewheel("task", submitted.word).out
    assert tidewheel("worker", "--secrets", str(tmp_path / "gone")).status == 2
    assert tidewheel("submit", "--env", "S", "--command", "true").status == 2
    refused = tidewheel("submit", "--env", "S=secret:../x", "--command", "true")
    assert refused.status == 2 and "is not a reference to a secret" in refused.err
