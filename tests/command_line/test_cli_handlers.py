"""Handlers in Python, as their author sees them: what they raised, and what they printed."""

import json
import re

import pytest

PIPE = """\
import json
import logging
import sys

import tidewheel

handlers = tidewheel.Handlers()


@handlers.register("clean")
def clean(spec, job):
    return look_up(spec)


def look_up(spec):
    return spec["nothere"]


@handlers.register("leave")
async def leave(spec, job):
    sys.exit(3)


@handlers.register("parse")
def parse(spec, job):
    return json.loads("{")


@handlers.register("quiet")
async def quiet(spec, job):
    return None


@handlers.register("talk")
async def talk(spec, job):
    print("to you")
    logging.warning("to be heard")
    raise ValueError("enough")


@handlers.register("evil")
def evil(spec, job):
    raise ValueError(spec["text"])
"""


@pytest.fixture
def pipe(tidewheel):
    """Has a task of a handler submitted and worked on; returns what the worker said."""
    (tidewheel.folder / "pipe.py").write_text(PIPE)

    def work(handler, *options):
        tidewheel("submit", "--id", handler, "--handler", handler, "--spec", "{}", *options)
        return tidewheel("worker", "--handlers", "pipe:handlers", "--exit-when-idle").out

    return work


@pytest.mark.req("R007-13")
def test_the_worker_says_what_a_handler_raised_and_where(pipe):
    assert re.search(
        r"clean  attempt 1 failed in \S+: KeyError: 'nothere' \(pipe.py:16\)\n", pipe("clean")
    )
    assert "failed" in (line := pipe("leave")) and ": SystemExit: 3 (pipe.py:21)\n" in line


@pytest.mark.req("R007-13")
def test_the_page_of_a_task_shows_the_last_calls_in_the_handlers_own_code(pipe, tidewheel):
    pipe("clean")
    page = tidewheel("task", "clean").out
    assert (
        "  error       KeyError: 'nothere'\n"
        "              pipe.py:12 in clean\n"
        "                return look_up(spec)\n"
        "              pipe.py:16 in look_up\n"
        '                return spec["nothere"]\n'
    ) in page
    assert "KeyError: 'nothere' (pipe.py:16)\n" in page.partition("attempts\n")[2]
    pipe("parse")  # raised in a library
    page = tidewheel("task", "parse").out
    assert "              pipe.py:26 in parse\n" in page and "decoder.py" not in page


@pytest.mark.req("R007-13")
def test_the_log_of_a_task_of_the_queue_ends_with_the_traceback(pipe, tidewheel):
    pipe("clean", "--name", "tidy")
    for name in ("clean", "tidy"):
        log = tidewheel("log", name)
        assert log.status == 0, log.err
        assert log.out.startswith("Traceback (most recent call last):\n")
        assert log.out.endswith("KeyError: 'nothere'\n")
    assert tidewheel("log", "clean", "--file", "err").out == log.out
    assert tidewheel("task", "clean", "--log", "err").out == log.out
    document = tidewheel("log", "clean", "--json").json
    assert (document["id"], document["attempt"], document["run"]) == ("clean", 1, None)
    assert (document["text"], document["cut"]) == (log.out, False)


def test_the_log_of_a_command_of_the_queue_is_what_it_wrote(tidewheel):
    tidewheel("submit", "--id", "a", "--command", "echo good; echo bad >&2")
    refused = tidewheel("log", "a")
    assert refused.status == 2 and "has had no attempt yet" in refused.err
    tidewheel("worker", "--exit-when-idle")
    assert tidewheel("log", "a").out == "good\nbad\n"
    assert tidewheel("log", "a", "--file", "e").out == tidewheel("log", "a", "--err").out
    assert tidewheel("log", "a", "--err").out == "bad\n"
    [path] = tidewheel("log", "a", "--path").out.splitlines()
    assert path.endswith("job.out")
    refused = tidewheel("log", "a", "--file", "xtrace")
    assert refused.status == 2
    assert "a job has no file 'xtrace'\n  It has out, err" in refused.err


def test_a_word_that_is_neither_a_run_nor_a_task_is_refused_as_before(tidewheel):
    tidewheel("submit", "--id", "a", "--", "true")
    refused = tidewheel("log", "nope")
    assert refused.status == 2 and "nope" in refused.err


def test_a_handler_that_printed_nothing_has_no_log(pipe, tidewheel):
    pipe("quiet")
    refused = tidewheel("log", "quiet")
    assert refused.status == 2
    assert "no output of the handler of task 'quiet' was found here" in refused.err


def test_nothing_that_a_handler_raises_controls_the_terminal(pipe, tidewheel):
    text = "\x1b[2J\x07"
    shown = pipe("evil", "--spec", json.dumps({"text": text}))
    shown += tidewheel("task", "evil").out + tidewheel("log", "evil").out
    assert "\\x1b" in shown and not set("\x1b\x07") & set(shown)


@pytest.mark.req("R007-13")
def test_what_a_handler_prints_is_in_its_tasks_log_and_not_among_the_workers_lines(
    pipe, tidewheel
):
    said = pipe("talk")
    assert "to you" not in said and "talk  attempt 1 failed" in said
    log = tidewheel("log", "talk").out
    assert log.startswith(
        "to you\nWARNING:root:to be heard\nTraceback (most recent call last):\n"
    )
    assert log.endswith("ValueError: enough\n")
    assert tidewheel("log", "talk", "--file", "out").out == "to you\n"
    assert "job.out" in tidewheel("task", "talk").out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("import json\njson.loads('{')\n", "broken.py:2 raised JSONDecodeError"),
        ("def f(:\n", "broken.py:1 raised SyntaxError"),
        ("import nothing_like_this\n", "No module named 'nothing_like_this'"),
    ],
)
def test_a_module_of_handlers_that_cannot_be_imported_is_one_sentence_with_its_place(
    tidewheel, content, said
):
    (tidewheel.folder / "broken.py").write_text(content)
    answer = tidewheel("worker", "--handlers", "broken:handlers", "--exit-when-idle")
    assert answer.status == 2
    assert said in answer.err and "Traceback" not in answer.err, answer.err


FORKS = """
import asyncio, os, sys
import tidewheel

handlers = tidewheel.Handlers()


@handlers.register("returns")
def returns(spec, job):
    child = os.fork()
    return {"status": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])} if child else None


@handlers.register("exits")
def exits(spec, job):
    child = os.fork()
    if not child:
        sys.exit(7)
    return {"status": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}


@handlers.register("awaited")
async def awaited(spec, job):
    child = os.fork()
    if not child:
        return None
    ended = await asyncio.to_thread(os.waitpid, child, 0)
    return {"status": os.waitstatus_to_exitcode(ended[1])}
"""


@pytest.mark.parametrize(("handler", "status"), [("returns", 1), ("exits", 7), ("awaited", 1)])
def test_a_process_that_a_handler_forks_ends_with_it_and_is_no_second_worker(
    tidewheel, handler, status
):
    (tidewheel.folder / "forks.py").write_text(FORKS)
    tidewheel("submit", "--id", "a", "--handler", handler, "--timeout", "20s")
    worked = tidewheel("worker", "--handlers", "forks:handlers", "--exit-when-idle")
    assert f'{{"status": {status}}}' in tidewheel("task", "a").out
    assert worked.out.count("job.ended") == 1
    words = f"a process that the handler {handler!r} made with os.fork() returned from it; end"
    assert (words in worked.err) == (status == 1)
