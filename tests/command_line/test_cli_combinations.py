"""Options that would have no effect are usage errors: what works, and what to do."""

import json

import pytest

from tests.support.many_commands import answers
from tests.support.prepared_run import PreparedRun


def usage(answer):
    """What a usage error says."""
    assert (answer.status, answer.out) == (2, ""), answer
    what, advice = answer.err.splitlines()
    assert what.startswith("tidewheel: ") and advice.startswith("  See: tidewheel "), what
    return what.removeprefix("tidewheel: ")


DELETE = "works only without --delete; leave out one of them"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("runs --delete x --workflow w", f"--workflow {DELETE}"),
        ("runs --delete x --matching :failed", f"--matching {DELETE}"),
        ("runs --delete x --nested", f"--nested {DELETE}"),
        ("runs --delete x -n 3", f"-n/--limit {DELETE}"),
        ("runs --delete x --delete-older 1d", f"--delete-older {DELETE}"),
        ("tasks --watch --vocabulary scylla", "--vocabulary works only without --watch; leave"),
        ("tasks --watch --before 7", "--before works only without --watch; leave out one of"),
        ("log x --path --follow", "-f/--follow works only without --path; leave out one of"),
        ("run . --detach --fail-on lost", "--fail-on works only without --detach; leave out"),
        ("audit --check a --export b", "--export works only without --check; leave out one of"),
        ("broadcast x -d -s script=true", "-s/--set works only without -d/--display; leave"),
        ("broadcast x --display -F a", "-F/--set-file works only without -d/--display; leave"),
        ("broadcast x -d -c script", "-c/--cancel works only without -d/--display; leave out"),
        ("broadcast x -d --clear", "-C/--clear works only without -d/--display; leave out one"),
        (
            "broadcast x -d -e 3",
            "-e/--expire works only without -d/--display; leave out one of",
        ),
    ],
)
def test_an_option_beside_one_that_leaves_it_no_effect_is_refused(tidewheel, words, what):
    (tidewheel.folder / "a").write_text("")
    assert usage(tidewheel(*words.split())).startswith(what)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("runs --yes", "--yes works only with --delete; give both"),
        ("runs --dry-run", "--dry-run works only with --delete-older; give both"),
        ("verify --yes", "--yes works only with --delete; give both"),
        ("verify --files --yes", "--yes works only with --delete; give both"),
        ("verify --delete", "--delete works only with --files; give both"),
        ("verify --files --unmarked", "--unmarked works only with --delete; give both"),
        ("log x --glob", "--glob works only with --search; give both"),
        ("log x --case --level warning", "--case works only with --search; give both"),
        ("submit --atomic -- true", "--atomic works only with --file; give both"),
        ("submit --retry-delay 1s -- true", "--retry-delay works only with --retries; give bo"),
        ("submit --compose a.yml", "--compose works only with --runner; give both"),
    ],
)
def test_an_option_without_the_one_that_it_works_with_is_refused(tidewheel, words, what):
    assert usage(tidewheel(*words.split())).startswith(what)
    assert not tidewheel.state.exists()


@pytest.mark.parametrize(
    ("actions", "options", "taker"),
    [
        (
            "token list, token revoke 3",
            "--scope read, --for a, --queue q, --workflow w, --lasts 1d",
            "create",
        ),
        ("objects list, objects remove x", "--fact a=b", "post"),
        ("objects post x", "--after a, --limit 3", "list"),
        ("sbi list", "--reason why", "abort"),
        ("sbi abort x, sbi show x", "--status failed, --subarray s, --limit 3", "list"),
        ("sbi submit x", "--status failed", "list"),
        ("sbi submit x", "--reason why", "abort"),
        ("sbi show x, sbi list", "--dry-run", "submit"),
        ("blocks abort x, blocks show x", "--sbi x, --status failed, --workflow w", "list"),
        ("blocks list", "--reason why", "abort"),
        ("blocks list, blocks abort x", "--history", "show"),
        (
            "workflows list, workflows show x, workflows remove x, workflows diff x y",
            "-p/--parameter a=1",
            "check and render",
        ),
        (
            "workflows list, workflows show x, workflows remove x, workflows diff x y, "
            "workflows check x",
            "--stage s",
            "render",
        ),
    ],
)
def test_an_option_of_another_action_is_refused(tidewheel, actions, options, taker):
    asked = {
        f"{option.split()[0]} is for {taker}, not for {action.split()[1]}; leave it out": [
            *action.split(),
            *option.replace("-p/", "").split(),
        ]
        for action in actions.split(", ")
        for option in options.split(", ")
    }
    found = answers(tidewheel, list(asked.values()))
    assert list(map(usage, found)) == list(asked)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("show {run} 1/prep --history", "--history concerns the whole run; leave out '1/prep'"),
        (
            "show {run} 1/prep --versions",
            "--versions concerns the whole run; leave out '1/prep'",
        ),
        (
            "log {run} --file job",
            "--file/--err is about the log of one job; name its task: tide",
        ),
        (
            "log {run} --err",
            "--file/--err is about the log of one job; name its task: tidewheel",
        ),
        (
            "log -s 2",
            "-s/--submit is about the log of one job; name its task: tidewheel log {run}",
        ),
        ("log {run} --attempt 2 -f", "--attempt is about the log of one job; name its task"),
        ("log {run} --level error --err", "--file/--err is about the log of one job; name its"),
        ("log {run} --search x -s 2", "-s/--submit is about the log of one job; name its task"),
        ("stop {run}//3 --at 2", "give '3' or --at, not both"),
        ("stop {run}//3/prep --after 3/post", "give '3/prep' or --after, not both"),
        ("broadcast {run} 1/prep", "unexpected '1/prep'; give points with -p, tasks with -n"),
        (
            "broadcast {run} 1/prep -d",
            "unexpected '1/prep'; give points with -p, tasks with -n",
        ),
    ],
)
def test_what_does_not_belong_to_a_run_that_was_named_is_refused(tidewheel, words, what):
    run = PreparedRun(tidewheel).starts().name
    answer = tidewheel(*words.format(run=run).split())
    assert usage(answer).startswith(what.format(run=run))


@pytest.mark.parametrize("more", ["", "--search x", "--path"])
def test_the_log_of_a_task_of_the_queue_has_no_submissions(tidewheel, more):
    tidewheel("submit", "--id", "one", "--", "true")
    told = usage(tidewheel("log", "one", "-s", "2", *more.split()))
    assert told == (
        "-s/--submit is for tasks of runs; one is a task of the queue: tidewheel log one "
        "--attempt N"
    )


def test_what_a_task_wrote_is_not_printed_in_json_by_the_command_task(tidewheel):
    tidewheel("submit", "--id", "one", "--", "echo", "hello")
    tidewheel("worker", "--once")
    refused = tidewheel("task", "one", "--log", "out", "--json")
    assert refused.status == 2
    told = json.loads(refused.err)["error"]["message"]
    assert told.startswith("--log prints what the task wrote as it is")
    instead = told.rpartition(": tidewheel ")[2]
    assert tidewheel(*instead.split()).json["text"] == "hello\n"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (
            "reload ./other",
            "'./other' does not work in a job: a job reloads only the folder of",
        ),
        (
            "reload c/run1 ./other -n",
            "'./other' does not work in a job: a job reloads only the",
        ),
        (
            "reload -s A=1",
            "-s/--set does not work in a job: a job reloads only the folder of its",
        ),
    ],
)
def test_a_job_reloads_the_folder_of_its_run_only(tidewheel, words, what):
    job = {
        "TIDEWHEEL_JOB_DIR": str(tidewheel.folder),
        "TIDEWHEEL_SECRET": "s",
        "TIDEWHEEL_WORKFLOW_ID": "c/run1",
    }
    assert usage(tidewheel(*words.split(), **job)).startswith(what)


# What a kind of definition cannot follow. Each row: the kind that `init` makes, the commands,
# and the options that would have no effect.
OF_CYCLES = "is for a flow.cylc or a workflow in Python, not for a SIP definition; leave it out"
OF_TEXTS = "is for a flow.cylc or a SIP definition, not for a workflow in Python; leave it out"
READ = "--icp/--initial-cycle-point 1, --fcp/--final-cycle-point 1, --compat cylc8"
STARTED = (
    "--startcp/--start-cycle-point 1, --stopcp/--stop-cycle-point 1, "
    "--hold-after/--hold-cycle-point/--holdcp 1"
)
TEXTS = "-s/--set A=1, -z/--set-list A=1, -S/--set-file a"


@pytest.mark.parametrize(
    ("kind", "commands", "given", "why"),
    [
        ("stages", "validate, rehearse, graph, list, run", READ, OF_CYCLES),
        ("stages", "run", STARTED, OF_CYCLES),
        ("python", "validate, rehearse, graph, list, run", TEXTS, OF_TEXTS),
    ],
)
def test_an_option_that_this_kind_of_definition_cannot_follow_is_refused(
    tidewheel, kind, commands, given, why
):
    tidewheel("init", "it", "--kind", kind)
    path = next(str(one) for one in (tidewheel.folder / "it").iterdir() if one.is_file())
    asked = [
        (f"{names} {why}", [command, path, names.partition("/")[0], value])
        for command in commands.split(", ")
        for names, value in (one.rsplit(" ", 1) for one in given.split(", "))
    ]
    found = answers(tidewheel, [words for _, words in asked])
    assert list(map(usage, found)) == [what for what, _ in asked]


def test_the_points_to_draw_are_no_options_of_a_run(tidewheel):
    tidewheel("init", "it", "--kind", "stages")
    assert tidewheel("graph", "it/it-1.0.0.yaml.j2", "1", "1").status == 0


def test_parameters_of_a_python_workflow_are_refused_without_advice_that_it_ignores(tidewheel):
    tidewheel("init", "it", "--kind", "python")
    refused = tidewheel("validate", "it/it.py", "-p", "a=1")
    assert refused.status == 2
    assert "it/it.py is not a SIP definition and has no parameters" in refused.err
    assert "Leave them out" in refused.err


@pytest.mark.parametrize("option", ["--stopcp", "--fcp", "--hold-after", "--icp"])
def test_points_for_a_run_of_stages_that_is_named_are_refused(tidewheel, option):
    tidewheel("init", "it", "--kind", "stages")
    tidewheel("register", "it")
    (tidewheel.folder / "it").rename(tidewheel.folder / "elsewhere")
    for name in ("it", "it/1.0.0"):
        refused = tidewheel("run", name, option, "1")
        assert refused.status == 2
        assert refused.err.startswith(f"tidewheel: {option} (")
        assert "not for a SIP definition" in refused.err
    assert tidewheel("runs", "--json").json["runs"] == []
