"""Exit statuses and messages when things go wrong; never a traceback."""

import json
import subprocess

import pytest

from tests.support.many_commands import answers
from tidewheel.cli.exit_codes import ExitCode
from tidewheel.cli.main import ELSEWHERE, commands


def two_lines(answer):
    what, advice = answer.err.splitlines()
    assert what.startswith("tidewheel: ")
    assert advice.startswith("  ")
    return what.removeprefix("tidewheel: "), advice.strip()


def test_a_store_of_no_known_kind_is_refused_without_its_password(tidewheel):
    refused = tidewheel("--store", "mysql://me:secret@host/db", "tasks")
    assert refused.status == 2
    assert two_lines(refused)[1] == (
        "Expected sqlite:///PATH, postgresql://USER@HOST/DATABASE, or the URL of a server, "
        "https://HOST"
    )
    assert "secret" not in refused.err


@pytest.mark.parametrize("store", ["sqlite:////proc/none/t.db", "sqlite:////dev/null/t.db"])
def test_a_store_that_cannot_be_opened_is_unavailable(tidewheel, store):
    failed = tidewheel("--store", store, "submit", "--", "true")
    assert failed.status == 3
    two_lines(failed)


LOOKING = (
    *("runs", "tasks", "workers", "queues", "workflows", "sbi", "blocks", "objects"),
    *("verify", "audit", "show", "tree", "why", "log", "pause", "token list", "notify list"),
    *("task x", "cancel x", "events --count 1", "export -", "tasks --watch"),
)


@pytest.mark.parametrize("how", ["--store", "TIDEWHEEL_STORE"])
def test_a_store_that_was_named_and_is_not_there_is_refused_and_not_made(tidewheel, how):
    url, path = "sqlite:///nodir/x.db", tidewheel.folder / "nodir" / "x.db"
    if how == "TIDEWHEEL_STORE":
        tidewheel.environment["TIDEWHEEL_STORE"] = url
    named = [] if how == "TIDEWHEEL_STORE" else ["--store", url]
    found = answers(tidewheel, [[*named, *words.split()] for words in LOOKING])
    for words, refused in zip(LOOKING, found, strict=True):
        assert refused.status == ExitCode.REFUSED, (words, refused)
        assert f"there is no store {url}" in refused.err, (words, refused.err)
        assert str(path) in refused.err and "tidewheel run" in refused.err
    assert not path.parent.exists()
    made = tidewheel(*named, "submit", "--", "true")
    assert made.status == 0 and path.exists()
    assert made.err.splitlines().count(f"made a new store: {path}") == 1
    again = tidewheel(*named, "submit", "--", "true")
    assert again.status == 0 and "new store" not in again.err


NEVER_FIRST = (
    *("migrate", "worker --once", "worker", "monitor", "scheduler", "verify --files"),
    *("run c1/run1", "run nothere", "queues default --pause", "objects post a"),
)


def test_whoever_needs_what_others_have_made_makes_no_store_that_was_named(tidewheel):
    url, folder = "sqlite:///nodir/x.db", tidewheel.folder / "nodir"
    found = answers(tidewheel, [["--store", url, *words.split()] for words in NEVER_FIRST])
    for words, refused in zip(NEVER_FIRST, found, strict=True):
        assert refused.status == ExitCode.REFUSED, (words, refused)
        assert f"there is no store {url}" in refused.err, (words, refused.err)
    assert not folder.exists()


def test_a_file_that_is_refused_makes_no_store(tidewheel):
    (tidewheel.folder / "bad.json").write_text('{"no": "instance"}')
    (tidewheel.folder / "flow.cylc").write_text("[scheduling]\n[[graph]]\nR1 = a =>\n")
    named = ["--store", "sqlite:///nodir/x.db"]
    for words in ("sbi submit bad.json", "sbi submit none.json", "register none", "run ."):
        refused = tidewheel(*named, *words.split())
        assert refused.status == ExitCode.REFUSED, (words, refused)
        assert "made a new store" not in refused.err
    assert not (tidewheel.folder / "nodir").exists()


def test_the_name_of_a_run_makes_no_store_where_this_user_has_none(tidewheel):
    refused = tidewheel("run", "nothere/run1")
    assert refused.status == ExitCode.REFUSED and "nor a run" in refused.err
    assert not (tidewheel.state / "tidewheel.db").exists()


def test_a_run_says_that_it_made_the_store_that_was_named(tidewheel):
    (tidewheel.folder / "flow.cylc").write_text("[scheduling]\n[[graph]]\nR1 = a\n")
    named = ["--store", "sqlite:///new.db", "run", ".", "--mode", "skip"]
    assert f"made a new store: {tidewheel.folder / 'new.db'}" in tidewheel(*named).err
    assert "new store" not in tidewheel(*named).err


def test_whoever_looks_before_there_is_anything_makes_nothing(tidewheel):
    commands = ["runs", "tasks", "workers", "workflows", "objects", "show x", "verify"]
    found = answers(tidewheel, [words.split() for words in commands])
    runs, tasks, workers, workflows, objects, show, verify = found
    assert "there are no runs yet; start one: tidewheel run DIR" in runs.err
    assert [one.status for one in (runs, tasks, workers, workflows, objects)] == [0] * 5
    assert show.status == 2 and "List all runs" in show.err
    assert verify.status == 2 and "there is no store" in verify.err
    assert not tidewheel.state.exists()


def test_a_database_that_does_not_answer_is_unavailable(tidewheel):
    failed = tidewheel("tasks", TIDEWHEEL_STORE="postgresql://me:secret@127.0.0.1:1/none")
    assert failed.status == 3
    assert two_lines(failed)[1] == "Check that it runs and that the address is right"
    assert "secret" not in failed.err
    error = json.loads(
        tidewheel("tasks", "--json", TIDEWHEEL_STORE="postgresql://127.0.0.1:1/none").err
    )["error"]
    assert error["code"] == "store_unreachable"


def test_a_damaged_store_is_left_alone(tidewheel):
    tidewheel("submit", "--", "true")
    database = tidewheel.state / "tidewheel.db"
    database.write_bytes(b"this is no database" * 1000)
    failed = tidewheel("tasks")
    assert failed.status == 3
    assert "damaged" in failed.err
    assert database.read_bytes().startswith(b"this is no database")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["tsks"], "there is no command 'tsks'; did you mean 'tasks'?"),
        (["tasks", "--colour"], "there is no option --colour"),
        (["tasks", "--limit", "0"], "'0' is not accepted; expected 1 "),
        (["tasks", "--status", "runing"], "status is 'runing'"),
        (["message", "hi"], "you are not inside a job"),
        (["message"], "nothing to send"),
        (["worker", "--handlers", "nothing:here"], "handlers is 'nothing:here'"),
        (["worker", "--handlers", "json"], "handlers is 'json'"),
        (["worker", "--handlers", "json:dumps"], "handlers is 'json:dumps'"),
        (
            ["worker", "--handlers", "json:dump_all"],
            "module json has no 'dump_all'; the module has none",
        ),
        (["worker", "--slots", "0"], "slots is 0"),
        (["worker", "--grace", "-1s"], "is not valid; expected seconds"),
        (["monitor", "--interval", "0"], "interval_seconds is 0.0"),
        (["completion", "tcsh"], "'tcsh' is none of bash, zsh, fish"),
    ],
)
def test_a_wrong_request_is_refused(tidewheel, arguments, what):
    refused = tidewheel(*arguments)
    assert refused.status == 2
    assert what in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    ("theirs", "here"),
    [
        ("scan", "runs"),
        ("play", "run DIR"),
        ("clean", "runs --delete RUN, or runs --delete-older P30D"),
        ("install", "run DIR, or register PATH"),
        ("status", "show RUN, or runs for all of them"),
        ("delete", "runs --delete RUN"),
        ("vip", "run DIR (it validates first)"),
        ("help", "--help, or tidewheel COMMAND --help"),
        ("start", "run DIR"),
        ("lint", "validate DIR --strict"),
        ("edit", "reload RUN (after a change of its files), or broadcast RUN"),
    ],
)
def test_a_command_of_another_scheduler_is_answered_with_what_does_the_same(
    tidewheel, theirs, here
):
    refused = tidewheel(theirs)
    assert refused.status == 2
    assert f"there is no command '{theirs}'; use: tidewheel {here}\n" in refused.err


def test_what_others_call_a_command_is_no_command_here_and_leads_to_one():
    assert not set(ELSEWHERE) & set(commands())
    for here in ELSEWHERE.values():
        assert here.split()[0].rstrip(",") in {*commands(), "--help", "--version"}


def test_an_error_without_advice_leads_to_the_help_of_its_command(tidewheel):
    for words in (["worker", "--queue"], ["submit", "--id"]):
        assert tidewheel(*words).err.endswith(f"\n  See: tidewheel {words[0]} --help\n"), words
    assert tidewheel("--nosuch").err.endswith("\n  See: tidewheel --help\n")


def test_a_wrong_setting_in_the_environment_is_refused(tidewheel):
    refused = tidewheel("monitor", TIDEWHEEL_RETENTION_SECONDS="a week")
    assert refused.status == 2
    assert two_lines(refused)[1] == "Expected a number of seconds"


def test_words_on_the_command_line_are_refused_in_json_too(tidewheel):
    refused = tidewheel("--json", "tasks", "--limit", "many")
    error = json.loads(refused.err)["error"]
    assert (refused.status, error["code"]) == (2, "usage")
    assert error["advice"] == "See: tidewheel tasks --help"


def test_a_reader_that_goes_away_is_no_error(tidewheel):
    lines = "".join(f'{{"id": "{n}", "command": "true"}}\n' for n in range(2000))
    tidewheel("submit", "--file", "-", stdin=lines)
    pipe = "tidewheel tasks --limit 2000 | head -1; echo ${PIPESTATUS[0]}"
    done = subprocess.run(
        ["bash", "-c", pipe],
        env=tidewheel.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[1] == "0"
    assert "Traceback" not in done.stderr


def test_a_worker_of_a_queue_without_a_name_is_refused(tidewheel):
    failed = tidewheel("worker", "--queue", "", "--once")
    assert failed.status == 2
    assert "queue is empty" in failed.err
    assert "1 to 256 printable characters" in failed.err


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (
            ("--icp", "9"),
            "the final cycle point 5 is before the initial one, 9\n"
            "  | final cycle point = 5\n  | ^\n"
            "    choose an initial point up to 5 (--icp), or a final point from 9 on (--fcp)\n",
        ),
        (
            ("--startcp", "9"),
            "the start point 9 is after the final one, 5\n"
            "    no task would run: choose a start point up to 5, or a later final one\n",
        ),
    ],
)
def test_points_in_the_wrong_order_are_both_named_with_what_to_choose(tidewheel, option, said):
    (tidewheel.folder / "flow.cylc").write_text(
        "[scheduling]\n  cycling mode = integer\n  initial cycle point = 1\n"
        "  final cycle point = 5\n  [[graph]]\n    P1 = a\n[runtime]\n  [[a]]\n"
    )
    refused = tidewheel("run", ".", *option)
    assert refused.status == 2
    assert said in refused.err and "nothing was started" in refused.err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("init", "NAME is missing; write: tidewheel init NAME"),
        ("task", "ID|NAME is missing; write: tidewheel task ID|NAME"),
        ("runs forecast", "did you mean: tidewheel runs --workflow forecast?"),
        ("run a b", "'b' is one word too many; write: tidewheel run [DIR|FILE|NAME]\n"),
        ("runs --josn", "there is no option --josn; did you mean --json?"),
        ("runs -n 0", "-n/--limit: '0' is not accepted; expected 1 to 1000"),
        ("runs -n x", "-n/--limit: 'x' is not accepted; expected 1 to 1000"),
        (
            "monitor --retention 3x",
            "--retention: '3x' is not valid; expected seconds, a number",
        ),
        ("workflows chekc", "'chekc' is none of list, show, check, "),
        ("workflows chekc", "; did you mean check?"),
        ("stop --at", "--at needs a value"),
        ("stop --kill=1", "--kill takes no value"),
    ],
)
def test_a_slip_of_the_fingers_is_answered_with_what_to_type(tidewheel, typed, said):
    refused = tidewheel(*typed.split())
    assert refused.status == 2
    assert said in refused.err and "  See: tidewheel " in refused.err
