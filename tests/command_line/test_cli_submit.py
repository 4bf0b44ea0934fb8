"""``tidewheel submit``: every way to say what shall be done."""

import json

import pytest


def document(tidewheel, task_id):
    return tidewheel("task", task_id, "--json").json["task"]


def test_options_become_the_task(tidewheel):
    tidewheel("submit", "--id", "before", "--", "true")
    options = {
        "--id": "a",
        "--name": "full",
        "--queue": "q",
        "--command": "make all",
        "--priority": "9",
        "--retries": "2",
        "--retry-delay": "1s,PT10S",
        "--timeout": "10m",
        "--delay": "1h",
        "--cpu": "0.5",
        "--memory": "2GiB",
        "--gpu": "1",
        "--nodes": "2",
        "--buffer": "1TB",
        "--label": "fast",
        "--key": "k",
        "--limit-key": "l",
        "--tag": "t",
        "--needs": "before:data",
        "--spec": '{"n": 1}',
    }
    words = [word for option in options.items() for word in option]
    assert tidewheel("submit", *words, "--exclusive").word == "a"
    task = document(tidewheel, "a")
    assert (
        task
        | {
            "queue": "q",
            "name": "full",
            "command": "make all",
            "spec": {"n": 1},
            "priority": 9,
            "max_retries": 2,
            "retry": {"delays": [1.0, 10.0]},
            "timeout_seconds": 600.0,
            "resources": {
                "cpu": 0.5,
                "memory_bytes": 2**31,
                "gpu": 1,
                "labels": ["fast"],
                "nodes": 2,
                "exclusive": True,
                "buffer_bytes": 10**12,
                "flavours": [],
            },
            "unique_key": "k",
            "limit_key": "l",
            "tag": "t",
            "status": "waiting",
            "open_needs": 1,
        }
        == task
    )


def test_a_program_gets_exactly_its_arguments(tidewheel):
    awkward = ["printf", "%s\n", "two words", "$HOME", "`id`", "it's", "*", "--json"]
    task_id = tidewheel("submit", "--", *awkward).word
    tidewheel("worker", "--exit-when-idle")
    assert tidewheel("task", task_id, "--log", "out").out.splitlines() == awkward[2:]


def test_json_answers_with_id_and_whether_it_is_new(tidewheel):
    again = ["--json", "submit", "--id", "a", "--", "true"]
    assert tidewheel(*again).json == {"id": "a", "created": True}
    assert tidewheel(*again).json == {"id": "a", "created": False}


def test_the_same_key_finds_the_task_that_lives(tidewheel):
    first, second = (tidewheel("submit", "--key", "nightly", "--", "true") for _ in range(2))
    assert first.word == second.word
    told = "this task exists already, so nothing was submitted; its status is ready"
    assert told in second.err


@pytest.mark.req("R002-4")
@pytest.mark.parametrize("way", ["argument", "file", "stdin"])
def test_a_spec_comes_from_the_argument_a_file_or_a_pipe(tidewheel, way):
    spec = '{"big": 123456789012345678901234567890, "text": "é"}'
    (tidewheel.folder / "spec.json").write_text(spec)
    given = {"argument": spec, "file": "@spec.json", "stdin": "-"}[way]
    tidewheel("submit", "--id", "a", "--handler", "f", "--spec", given, stdin=spec)
    assert document(tidewheel, "a")["spec"] == json.loads(spec)


@pytest.mark.req("R002-3", "R002-30")
def test_a_file_of_tasks_is_stored_line_by_line(tidewheel):
    lines = [
        '{"id": "a", "command": "echo a"}',
        "",
        '{"id": "b", "command": "echo b", "needs": ["a"], "timeout": "10m", "queue": "other"}',
        '{"id": "a", "command": "echo another a"}',
        '{"id": "c", "comand": "echo c"}',
        '{"id": "d", "needs": ["nobody"]}',
    ]
    (tidewheel.folder / "tasks.jsonl").write_text("\n".join(lines))
    stored = tidewheel("submit", "--file", "tasks.jsonl", "--queue", "bulk")
    assert (stored.status, stored.out) == (2, "a\nb\n")
    assert "line 4 refused: id 'a' is taken" in stored.err
    assert "line 5 refused: task 'c': there is no field 'comand'" in stored.err
    assert "line 6 refused: task 'd' needs 'nobody', which is neither" in stored.err
    assert "2 tasks submitted, 3 refused" in stored.err
    assert [document(tidewheel, one)["queue"] for one in "ab"] == ["bulk", "other"]

    again = tidewheel("--json", "submit", "--file", "-", stdin="\n".join(lines)).json
    assert (again["inserted"], again["present"]) == ([], ["b"]) or again["present"] == [
        "a",
        "b",
    ]
    assert [(one["line"], one["code"]) for one in again["invalid"]] == [(5, "invalid")]
    assert ("d", "unknown_dependency") in [(one["id"], one["code"]) for one in again["failed"]]


def test_an_atomic_file_is_stored_whole_or_not_at_all(tidewheel):
    lines = '{"id": "a", "command": "true"}\n{"id": "b", "needs": ["nobody"]}\n'
    refused = tidewheel("submit", "--file", "-", "--atomic", stdin=lines)
    assert (refused.status, refused.out) == (2, "")
    assert tidewheel("--json", "tasks").json["tasks"] == []


@pytest.mark.parametrize("line", ["no json", "[1]", '{"command": NaN}'])
def test_a_line_that_is_no_task_is_named(tidewheel, line):
    refused = tidewheel("submit", "--file", "-", stdin=f'{{"command": "true"}}\n{line}\n')
    assert refused.status == 2
    assert "tidewheel: line 2 is" in refused.err
    assert tidewheel("--json", "tasks").json["tasks"] == []


def test_waiting_shows_the_result_and_fails_with_the_task(tidewheel):
    with tidewheel.started("worker") as worker:
        worker.read_until("worker.registered")
        good = tidewheel("submit", "--wait", "--name", "good", "--", "true")
        assert (good.status, good.out.split()[:2]) == (0, ["good", "succeeded"])
        assert "its log: tidewheel log " in good.out  # with what it printed
        # Which steps it saw on the way depends on who is quicker.
        assert good.err.endswith("good  succeeded\n")

        bad = tidewheel("submit", "--wait", "--command", "echo oh >&2; exit 3", "--id", "bad")
        assert bad.status == 1
        assert "bad  failed in" in bad.out
        assert "exit: exit status 3; last line of job.err: oh" in bad.out
        assert "its log: tidewheel log bad" in bad.out

        answered = tidewheel("submit", "--wait", "--json", "--", "false")
        assert (answered.status, answered.json["task"]["status"]) == (1, "failed")

        many = '{"id": "x", "command": "true"}\n{"id": "y", "needs": ["x"]}\n'
        both = tidewheel("submit", "--wait", "--file", "-", stdin=many)
        assert (both.status, both.out.split()[:2]) == (0, ["x", "y"])


def test_waiting_on_a_terminal_shows_progress(tidewheel):
    with tidewheel.started("worker") as worker:
        worker.read_until("worker.registered")
        shown = tidewheel.on_terminal("submit", "--wait", "--name", "seen", "--", "true")
    assert shown.status == 0
    assert "✔ succeeded" in shown.out


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "there is nothing to execute"),
        (["--command", ""], "there is nothing to execute"),
        (["--command", " ", "--needs", "a"], "there is nothing to execute"),
        (["--command", "x", "--", "y"], "give PROGRAM or --command, not both"),
        (["ls -l | wc"], "for a line of bash write: tidewheel submit --command 'ls -l | wc'"),
        (["--command", "x", "--handler", "y"], "both a command and a handler"),
        (["--timeout", "soon", "--", "true"], "'soon' is not valid; expected seconds"),
        (["--memory", "much", "--", "true"], "'much' is not valid; expected bytes"),
        (["--needs", ":x", "--", "true"], "expected ID, or ID:OUTPUT"),
        (["--needs", "nobody", "--", "true"], "needs 'nobody', which is neither in this store"),
        (["--priority", "-1", "--", "true"], "priority is -1; expected a whole number"),
        (["--priority", "1.5", "--", "true"], "'1.5' is not a valid integer"),
        (["--spec", "{", "--handler", "f"], "spec: it is not valid JSON"),
        (["--spec", "@nothing.json", "--handler", "f"], "nothing.json: No such file"),
        (["--file", "nothing.jsonl"], "nothing.jsonl"),
        (["--file", "-", "--name", "x"], "--name is for one task"),
        (["--queue", "", "--", "true"], "queue is empty"),
        (["--name", "\x1b[31mred", "--", "true"], "cannot be printed"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(tidewheel, arguments, what):
    refused = tidewheel("submit", *arguments)
    assert refused.status == 2
    assert what in refused.err
    assert "Traceback" not in refused.err
    assert "\x1b" not in refused.err
    assert len(refused.err.splitlines()) == 2


def test_a_task_may_need_either_end_of_another(tidewheel):
    """As `:finish` in a graph."""
    tidewheel("submit", "--id", "good", "--", "true")
    tidewheel("submit", "--id", "bad", "--", "false")
    for one in ("good", "bad"):
        tidewheel("submit", "--id", f"after-{one}", "--needs", f"{one}:finished", "--", "true")
    tidewheel("worker", "--once")
    found = [document(tidewheel, f"after-{one}")["status"] for one in ("good", "bad")]
    assert found == ["succeeded", "succeeded"]


@pytest.mark.parametrize(
    ("output", "hint"),
    [
        ("success", "did you mean succeeded?"),
        ("finish", "did you mean finished?"),
        (
            "started",
            "task of a queue has succeeded, failed, cancelled, finished, and what its job says",
        ),
    ],
)
def test_an_output_that_no_task_of_a_queue_makes_is_refused(tidewheel, output, hint):
    tidewheel("submit", "--id", "a", "--", "true")
    refused = tidewheel("submit", "--needs", f"a:{output}", "--", "true")
    assert refused.status == 2
    assert f"it needs the output '{output}' of a" in refused.err and hint in refused.err


def test_a_task_that_is_cancelled_says_which_need_did_not_come_and_why(tidewheel):
    says = "tidewheel message --output part_1 done"
    tidewheel("submit", "--id", "a", "--command", says)
    tidewheel("submit", "--id", "b", "--needs", "a:part_one", "--", "true")
    tidewheel("submit", "--id", "c", "--needs", "b", "--", "true")
    tidewheel("submit", "--id", "by-hand", "--needs", "a:other", "--", "true")
    assert tidewheel("cancel", "by-hand").status == 0
    tidewheel("worker", "--once")
    tidewheel("submit", "--id", "late", "--needs", "a:failed", "--", "true")
    why = {
        one: tidewheel("task", one, "--json").json["why"]
        for one in ("b", "c", "late", "by-hand")
    }
    cancelled = "It was cancelled because it needed the output"
    end = "which did not come: that task is"
    assert why == {
        "b": [f"{cancelled} 'part_one' of task a, {end} succeeded, and its job made part_1."],
        "c": [f"{cancelled} 'succeeded' of task b, {end} cancelled."],
        "late": [f"{cancelled} 'failed' of task a, {end} succeeded, and its job made part_1."],
        "by-hand": [],
    }
    assert why["b"][0] in tidewheel("task", "b").out
