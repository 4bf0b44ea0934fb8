"""`cylc` inside a job: it reaches the run through the worker, with its attempt's secret."""

import json

import pytest

from tests.support.run_jobs import RUN, node, run_node
from tidewheel.errors import Declined, NotRunning


class Hook:
    """The run's side of calls: remembers them, and answers as it is told."""

    def __init__(self, *answers):
        self.calls = []
        self._answers = list(answers)

    async def __call__(self, caller, call):
        self.calls.append((caller, call))
        answer = self._answers.pop(0) if self._answers else {}
        if isinstance(answer, Exception):
            raise answer
        return answer


def call(home, script, *answers):
    hook = Hook(*answers)
    return run_node(home, node(main=script), calls=hook), hook.calls


def test_a_command_goes_to_the_run_in_the_name_of_the_job(tmp_path):
    ran, calls = call(tmp_path, 'cylc trigger --flow=new "${CYLC_WORKFLOW_ID}//1/bar"')
    assert ran.status == 0
    command = {"verb": "trigger", "ids": ["1/bar"], "flow": "new"}
    assert calls == [(f"{RUN}/1/foo/1", {"command": command, "wait": False})]


def test_a_command_about_the_run_is_waited_for(tmp_path):
    _, calls = call(tmp_path, "cylc pause")
    assert calls[0][1] == {"command": {"verb": "pause"}, "wait": True}


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ('cylc stop "$CYLC_WORKFLOW_ID"', NotRunning("x", "stopped")),
        ('cylc broadcast -s "scrip=x" "$CYLC_WORKFLOW_ID"', Declined("no such setting")),
        ("cylc trigger other//1/a", {}),
    ],
)
def test_what_cannot_be_done_fails_the_script(tmp_path, command, answer):
    ran, _ = call(tmp_path, command, answer)
    assert ran.status == 1
    assert ran.err.startswith("cylc ")


def test_an_unknown_option_is_refused(tmp_path):
    ran, calls = call(tmp_path, 'cylc hold --sideways "$CYLC_WORKFLOW_ID//1/a"')
    assert (ran.status, calls) == (2, [])
    assert "--after" in ran.err


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("cylc message 'the quick brown fox'", ["the quick brown fox"]),
        ("cylc message -- x", ["x"]),
        ("cylc message x y", ["x", "y"]),
        ('cylc message -- "$CYLC_WORKFLOW_ID" "$CYLC_TASK_JOB" good ugly', ["good", "ugly"]),
        ("cylc message -s WARNING hot CUSTOM:cold", ["WARNING:hot", "CUSTOM:cold"]),
        ("printf 'a\\nb\\n\\nc\\n' | cylc message -", ["a\nb", "c"]),
    ],
)
def test_messages_are_the_jobs_own(tmp_path, command, texts):
    ran, calls = call(tmp_path, command)
    assert (ran.status, calls) == (0, [])
    assert ran.reports.messages == [(text, None) for text in texts]


def test_a_message_for_another_job_is_a_command(tmp_path):
    _, calls = call(tmp_path, 'cylc message -- "$CYLC_WORKFLOW_ID" 1/bar/01 x')
    assert calls[0][1]["command"] == {"verb": "message", "id": "1/bar/01", "texts": ["x"]}


def test_both_ways_to_ask_for_the_version_agree(tmp_path):
    ran, _ = call(
        tmp_path, 'diff <(cylc --version) <(cylc get-cylc-version "$CYLC_WORKFLOW_ID")'
    )
    assert ran.status == 0


def found(*states):
    tasks = [{"id": "1/bar", "name": "bar", "point": "1", "state": state} for state in states]
    return {"tasks": tasks}


def test_workflow_state_polls_until_it_is_so(tmp_path):
    ask = "cylc workflow-state up//1/bar:failed --max-polls=20 --interval=0.01"
    ran, calls = call(tmp_path, ask, found(), found(), found("failed"))
    assert (ran.status, ran.out) == (0, "1/bar:failed\n")
    assert [one["look"] for _, one in calls] == ["workflow-state"] * 3
    asked = calls[0][1]["arguments"]
    assert (asked["run"], asked["id"]) == ("up", "1/bar:failed")


def test_workflow_state_gives_up(tmp_path):
    ask = "cylc workflow-state up//1/bar:failed --max-polls=2 --interval=0.01"
    ran, calls = call(tmp_path, ask, found(), found())
    assert (ran.status, len(calls)) == (1, 2)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("w//1/a:x --messages", {"id": "1/a:x", "messages": True}),
        ("w//1/a:x --triggers --flow=2", {"id": "1/a:x", "triggers": True, "flow": 2}),
        ("w//1/a --offset=-P1D", {"id": "1/a", "offset": "-P1D"}),
        ("w//1/a --offset -P1D", {"id": "1/a", "offset": "-P1D"}),
        ("w --task=a --point=1 --status=failed", {"id": "1/a:failed"}),
        ("w --task=a -T --message=done", {"id": "1/a:done", "messages": True}),
    ],
)
def test_workflow_state_is_asked_in_many_ways(tmp_path, words, asked):
    ran, calls = call(tmp_path, f"cylc workflow-state {words} --old-format", found("x"))
    assert (ran.status, ran.out) == (0, "bar, 1, x\n")
    assert calls[0][1]["arguments"].items() >= {"run": "w", **asked}.items()


def test_the_log_of_the_run_can_be_printed(tmp_path):
    document = {"path": "/p/log", "files": [], "text": "a\nb\n", "cut": False}
    ran, calls = call(tmp_path, 'cylc cat-log "$CYLC_WORKFLOW_ID"', document)
    assert ran.out == "a\nb\n"
    assert calls[0][1]["look"] == "log"


def broadcast(point, namespace, setting, value, was=None):
    row = {"point": point, "namespace": namespace, "setting": setting}
    return {"broadcasts": [row | {"value": value, "was": was}]}


def test_a_broadcast_is_repeated_as_it_was_understood(tmp_path):
    ran, calls = call(
        tmp_path,
        "cylc broadcast -s '[environment]X=a b' -n bar $CYLC_WORKFLOW_ID",
        broadcast("*", "bar", "[environment]X", "a b"),
    )
    assert calls[0][1]["command"]["settings"] == ["[environment]X=a b"]
    assert ran.out == "Broadcast set:\n+ [*/bar] [environment]X=a b\n"


def test_a_broadcast_that_is_taken_back_is_named_with_its_value(tmp_path):
    ran, _ = call(
        tmp_path,
        "cylc broadcast --expire 2 $CYLC_WORKFLOW_ID",
        broadcast("1", "bar", "script", None, was="true"),
    )
    assert (ran.status, ran.out) == (0, "Broadcast cancelled:\n- [1/bar] script=true\n")
    ran, _ = call(
        tmp_path / "2", "cylc broadcast --clear $CYLC_WORKFLOW_ID", {"broadcasts": []}
    )
    assert ran.status == 1


POOL = {
    "run": "w",
    "status": "running",
    "tasks": [
        {"name": "foo", "point": "1", "state": "running", "flows": [1], "held": False}
        | {"queued": False, "runahead": False},
        {"name": "bar", "point": "2", "state": "waiting", "flows": [1, 2], "held": True}
        | {"queued": False, "runahead": True},
    ],
}


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ("-t", "2/bar:waiting (held,runahead)\n1/foo:running\n"),
        ("-t -s -f", "1/foo:running flows=[1]\n2/bar:waiting (held,runahead) flows=[1,2]\n"),
        (
            "-t -l",
            "bar, 2, waiting, held, not-queued, runahead\n"
            "foo, 1, running, not-held, not-queued, not-runahead\n",
        ),
        ("", "workflow id=w\nstatus=running\n"),
    ],
)
def test_the_pool_is_dumped_as_scripts_read_it(tmp_path, options, lines):
    ran, _ = call(tmp_path, f"cylc dump {options} $CYLC_WORKFLOW_ID", POOL)
    assert ran.out == lines


def test_modules_of_the_workflow_do_not_get_in_the_way(tmp_path):
    ran, _ = call(
        tmp_path,
        'mkdir -p "$CYLC_WORKFLOW_RUN_DIR/lib/python"; '
        'echo "raise SystemExit(9)" > "$CYLC_WORKFLOW_RUN_DIR/lib/python/json.py"; '
        'cp "$CYLC_WORKFLOW_RUN_DIR/lib/python/json.py" json.py; cylc message hello',
    )
    assert (ran.status, json.dumps(ran.reports.messages)) == (0, '[["hello", null]]')
