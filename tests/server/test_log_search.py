"""Logs are searched on the server: the whole file, step by step, and those of all jobs."""

import os
import random
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.support.http_server import running_server
from tests.support.prepared_run import PreparedRun

STEPS_MAX = 1_000


@pytest.fixture
def run(tidewheel):
    return PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")


@pytest.fixture
def server(tidewheel, run):
    assert run.name == "forecast/run1"
    with running_server(tidewheel.store, home=tidewheel.state) as running:
        yield running


@pytest.fixture
def reader(server):
    return server.caller("read")


RUN = "/runs/forecast%2Frun1"


def steps(reader, path, **asked):
    """Every step of a search, until it is done."""
    found, cursor = [], ""
    for _ in range(STEPS_MAX):
        query = {**asked, "cursor": cursor} if cursor else asked
        reply = reader.get(f"{RUN}{path}?{urlencode(query)}")
        assert reply.status == 200, reply.body
        found.append(reply.json)
        if reply.json["done"]:
            return found
        assert reply.json["cursor"] != cursor
        cursor = reply.json["cursor"]
    raise AssertionError("it does not end")


def hits(reader, text="", path="/log/search", **asked):
    return [one for step in steps(reader, path, text=text, **asked) for one in step["hits"]]


def of_job(**more):
    return {"id": "1/model_a", "submit": 1, "attempt": 1, **more}


def line_at(reader, **asked):
    return reader.get(f"{RUN}/log/line?{urlencode(of_job(**asked))}").json


def numbered(found):
    return [(one["line"], one["text"]) for one in found]


def job_file(tidewheel, run, one, name="job.out"):
    return tidewheel.state / "runs" / run.name / "log" / "job" / one / "01" / name


def test_a_line_at_the_beginning_of_a_large_log_is_found_with_its_place(tidewheel, run, reader):
    """51 MB, of which a page shows the last 0.3: what was wrong stands in the third line."""
    run.writes_log("1/model_a", "job.out", "begin\n")
    path = job_file(tidewheel, run, "1/model_a")
    filler = b"".join(
        b"step %06d: all is well, as ever and everywhere\n" % n for n in range(20_000)
    )
    with path.open("ab") as log:
        log.write(b"CFL violated at 17\n")
        for _ in range(53):
            log.write(filler)
        log.write(b"the end: cfl VIOLATED\n")
    size = path.stat().st_size
    assert size > 51_000_000
    told = steps(reader, "/log/search", text="cfl violated", **of_job())
    assert len(told) > 1  # no request reads all of it
    first, last = [one for step in told for one in step["hits"]]
    assert (first["line"], first["offset"], first["text"]) == (2, 6, "CFL violated at 17")
    assert (last["line"], last["offset"]) == (3 + 53 * 20_000, size - 22)
    assert [one["searched"] for one in told] == sorted(one["searched"] for one in told)
    assert {one["size"] for one in told} == {size} and told[-1]["searched"] == size
    assert hits(reader, "cfl violated", case="true", **of_job()) == []
    assert steps(reader, "/log/line", line=2, **of_job())[-1]["offset"] == 6
    at = steps(reader, "/log/line", offset=size - 10, **of_job())[-1]
    assert (at["line"], at["offset"]) == (3 + 53 * 20_000, size - 22)


TEXT = "One\ntwo ONE\n\nthr*ee\none\r\nAn one\n"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"text": "one"}, [1, 2, 5, 6]),
        ({"text": "One", "case": "true"}, [1]),
        ({"text": "an*e", "match": "glob"}, [6]),
        ({"text": "e*one", "match": "glob"}, []),
        ({"text": "thr*", "match": "glob"}, [4]),
        ({"text": "r*e"}, [4]),
        ({"text": ".*"}, []),  # no regular expression
        ({"text": "nowhere"}, []),
    ],
)
def test_a_text_is_a_text_and_a_star_any_letters(run, reader, asked, found):
    run.writes_log("1/model_a", "job.out", TEXT)
    assert [one["line"] for one in hits(reader, **asked, **of_job())] == found


def test_letters_of_all_alphabets_have_two_cases(run, reader):
    run.writes_log("1/model_a", "job.out", "plain\nGRÜSSE\nΔΩΣ\n")
    assert [one["line"] for one in hits(reader, "grüsse", **of_job())] == [2]
    assert [one["line"] for one in hits(reader, "δω", **of_job())] == [3]
    assert hits(reader, "δω", case="true", **of_job()) == []


def test_a_line_is_searched_as_a_terminal_shows_it(run, reader):
    text = "a \x1b[31mEr\x1b[1mror\x1b[0m here\n10 %\r50 %\r100 %\n\x1b]0;title\x07x\nlast\n"
    run.writes_log("1/model_a", "job.out", text)
    assert numbered(hits(reader, "error", **of_job())) == [(1, "a Error here")]
    assert numbered(hits(reader, "100 %", **of_job())) == [(2, "100 %")]
    assert hits(reader, "50 %", **of_job()) == []
    assert hits(reader, "title", **of_job()) == []


LEVELS = """\
2026-11-18T05:00:00Z DEBUG - waiting
2026-11-18T05:00:01Z INFO - begun, no ERROR so far
2026-11-18 05:00:02,123 - model - WARNING - nearly full
    that is: 91 %
[05:00:03] ERROR in model
Traceback (most recent call last):
CRITICAL:root:gone
No ERROR was found
WARN late
"""


@pytest.mark.parametrize(
    ("level", "found"),
    [
        ("debug", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("info", [2, 3, 4, 5, 6, 7, 8, 9]),
        ("warning", [3, 4, 5, 6, 7, 8, 9]),
        ("error", [5, 6, 7, 8]),
        ("critical", [7, 8]),
    ],
)
def test_lines_are_chosen_by_level_and_bring_those_that_belong_to_them(
    run, reader, level, found
):
    run.writes_log("1/model_a", "job.out", LEVELS)
    for limit in (1, 100):  # also if a step ends between a line and its traceback
        asked = hits(reader, level=level, limit=limit, **of_job())
        assert [one["line"] for one in asked] == found
    told = {one["line"]: one["level"] for one in hits(reader, level="debug", **of_job())}
    assert (told[1], told[4], told[6], told[9]) == ("DEBUG", "WARNING", "ERROR", "WARNING")
    assert [one["line"] for one in hits(reader, "error", level="error", **of_job())] == [5, 8]


def test_what_has_no_level_is_information(run, reader):
    run.writes_log("1/model_a", "job.out", "plain\n")
    assert len(hits(reader, level="info", **of_job())) == 1
    assert hits(reader, level="warning", **of_job()) == []


def test_steps_find_each_line_once_wherever_they_end(run, reader, request):
    """Against a plain search through all lines; long lines, empty ones, none at the end."""
    chance = random.Random(request.config.getoption("randomly_seed"))
    words = ["tide", "", "Tide wheel", "x" * 400, "\x1b[1mtide\x1b[0m", "ERROR tide", "é" * 30]
    for limit in (1, 7, 200):
        lines = [chance.choice(words) for _ in range(20 * limit)]
        text = "\n".join(lines) + chance.choice(["", "\n"])
        run.writes_log("1/model_a", "job.out", text)
        expected = [n for n, line in enumerate(lines, 1) if "tide" in line.lower()]
        found = hits(reader, "TIDE", limit=limit, **of_job())
        assert [one["line"] for one in found] == expected
        content = text.encode()
        assert all(content[: one["offset"]].count(b"\n") + 1 == one["line"] for one in found)
        for number in chance.sample(range(1, len(lines)), 5):
            begin = len("\n".join(lines[: number - 1]).encode()) + (number > 1)
            told = line_at(reader, line=number)
            assert (told["offset"], told["line"], told["done"]) == (begin, number, True)
            back = line_at(reader, offset=begin)
            assert (back["offset"], back["line"]) == (begin, number)


def test_behind_the_end_is_the_last_line(run, reader):
    run.writes_log("1/model_a", "job.out", "one\ntwo\n")
    told = reader.get(f"{RUN}/log/line?line=99&id=1/model_a").json
    assert (told["line"], told["offset"], told["done"]) == (2, 4, True)


def test_a_log_that_grew_is_searched_on_from_where_the_search_was(run, reader):
    run.writes_log("1/model_a", "job.out", "tide 1\ntide")
    [step] = steps(reader, "/log/search", text="tide", **of_job())
    assert [one["line"] for one in step["hits"]] == [1, 2]
    run.writes_log("1/model_a", "job.out", "tide 1\ntide 2\ntide 3\n")
    asked = urlencode({"text": "tide", "cursor": step["cursor"], **of_job()})
    more = reader.get(f"{RUN}/log/search?{asked}").json
    # The line that had no end then is told again, as it is now.
    assert numbered(more["hits"]) == [(2, "tide 2"), (3, "tide 3")]


def test_a_line_without_end_is_searched_to_its_end(run, reader):
    run.writes_log("1/model_a", "job.out", "x" * 3_000_000 + "needle" + "y" * 3_000_000)
    [found] = hits(reader, "NEEDLE", **of_job())
    assert found["line"] == 1 and found["cut"] and "needle" in found["text"]
    assert len(found["text"]) <= 500
    told = steps(reader, "/log/line", line=2, **of_job())[-1]
    assert (told["line"], told["offset"]) == (1, 0)


def test_the_log_of_the_run_is_searched_over_all_of_its_parts(tidewheel, run, reader):
    folder = tidewheel.state / "runs" / run.name / "log" / "scheduler"
    folder.mkdir(parents=True)
    (folder / "log.000000000000000").write_text("2026-11-18T05:00:00Z ERROR - old\n")
    (folder / "log").write_text("2026-11-18T06:00:00Z ERROR - new\n")
    assert [one["line"] for one in hits(reader, level="error")] == [1, 2]
    assert [one["offset"] for one in hits(reader, "new")] == [33]


# ---- the logs of all jobs ----


def test_all_jobs_are_searched_the_newest_first(run, reader):
    run.writes_log("1/prep", "job.out", "ok\nCFL violated\n")
    run.writes_log("1/model_a", "job.err", "cfl violated\n")
    found = hits(reader, "cfl violated", path="/logs/search")
    assert [
        (one["id"], one["submit"], one["attempt"], one["file"], one["line"]) for one in found
    ] == [
        ("1/model_a", 1, 1, "err", 1),
        ("1/prep", 1, 1, "out", 2),
    ]
    for asked, ids in (
        ({"task": "prep"}, ["1/prep"]),
        ({"task": "model*"}, ["1/model_a"]),
        ({"task": "1/*"}, ["1/model_a", "1/prep"]),
        ({"task": "2/*"}, []),
        ({"file": "out"}, ["1/prep"]),
        ({"limit": 1}, ["1/model_a", "1/prep"]),
    ):
        told = steps(reader, "/logs/search", text="cfl violated", **asked)
        assert [one["id"] for step in told for one in step["hits"]] == ids, asked


def test_attempts_whose_logs_are_elsewhere_are_counted(run, reader):
    run.writes_log("1/prep", "job.out", "ok\n")
    for limit in (1, 100):
        told = steps(reader, "/logs/search", text="ok", limit=limit)
        assert sum(one["missing"] for one in told) == 1  # that of model_a
        assert sum(one["files"] for one in told) == 1


# ---- what strangers and jobs may do ----


@pytest.mark.parametrize("kind", ["link", "folder link", "fifo", "folder"])
def test_nothing_but_plain_files_of_the_job_is_searched(tidewheel, run, reader, tmp_path, kind):
    """S11: a search reads nothing that reading would not."""
    (tmp_path / "job.out").write_text("secret\n")
    run.writes_log("1/model_a", "job.out", "x")
    path = job_file(tidewheel, run, "1/model_a")
    path.unlink()
    match kind:
        case "link":
            path.symlink_to(tmp_path / "job.out")
        case "folder link":
            path.parent.rmdir()
            path.parent.symlink_to(tmp_path)
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
    for view in ("/log/search?text=secret&", "/log/line?line=1&", "/log/file?"):
        reply = reader.get(f"{RUN}{view}id=1/model_a")
        assert reply.status in (404, 409), (view, reply.body)
        assert b"secret" not in reply.body.replace(b"text=secret", b"")
        assert str(tidewheel.state).encode() not in reply.body
    told = steps(reader, "/logs/search", text="secret")
    assert [one["hits"] for one in told] == [[]] and told[0]["missing"] == 2


@pytest.mark.parametrize(
    "query",
    [
        "",
        "text=",
        "text=*&match=glob",
        "text=a%0Ab",
        f"text={'x' * 501}",
        "text=a&level=loud",
        "text=a&match=regex",
        "text=a&limit=0",
        "text=a&limit=1001",
        "text=a&cursor=../../x",
        "text=a&cursor=-1.0.0",
        "text=a&cursor=1.1",
        "text=a&file=../../../tidewheel.db",
        "text=a&id=../../..",
        "text=a&colour=blue",
    ],
)
def test_what_makes_no_sense_is_refused(run, reader, query):
    run.writes_log("1/model_a", "job.out", "a\n")
    known = "" if "id=" in query else "&id=1/model_a"
    assert reader.get(f"{RUN}/log/search?{query}{known}").status in (404, 409, 422)


@pytest.mark.parametrize("cursor", ["9" * 19 + ".0.0", "0.0." + "9" * 19, "5.1.4", "1.0.0"])
def test_a_cursor_that_was_made_up_reads_nothing_else(run, reader, cursor):
    run.writes_log("1/model_a", "job.out", LEVELS)
    for more in ({}, {"level": "error"}):
        asked = urlencode({"text": "e", "cursor": cursor, **more, **of_job()})
        reply = reader.get(f"{RUN}/log/search?{asked}")
        assert reply.status == 200
        assert all(one["text"] in LEVELS for one in reply.json["hits"])
    long = ".".join([cursor, *["9" * 19] * 3])
    assert reader.get(f"{RUN}/logs/search?text=e&cursor={long}").status == 200


def test_no_pattern_takes_long(run, reader):
    """Whatever would hang an engine that goes back and tries again."""
    run.writes_log("1/model_a", "job.out", ("a" * 5_000 + "\n") * 200)
    pattern = "a*" * 240 + "b"
    assert hits(reader, pattern, match="glob", **of_job()) == []
    assert hits(reader, "(a+)+$", **of_job()) == []
    run.writes_log("1/model_a", "job.out", "\x1b]" * 200_000 + "\n" + "[0" * 200_000)
    assert hits(reader, "zzz", level="error", **of_job()) == []


def test_a_team_searches_no_run_of_others(server, run):
    run.writes_log("1/model_a", "job.out", "a\n")
    stranger = server.caller("read", queues=["other"])
    for path in ("/log/search?text=a", "/log/line?line=1", "/logs/search?text=a", "/log/file"):
        assert stranger.get(f"{RUN}{path}").status in (403, 404)


# ---- a whole log, to keep ----


def test_a_whole_log_is_sent_as_a_file_and_never_shown_as_a_page(run, reader):
    text = "<script>alert(1)</script>\n" * 100_000
    run.writes_log("1/model_a", "job.out", text)
    reply = reader.get(f"{RUN}/log/file?id=1/model_a")
    assert (reply.status, reply.body) == (200, text.encode())
    assert reply.headers["content-length"] == str(len(text))
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.headers["x-content-type-options"] == "nosniff"
    name = 'attachment; filename="forecast_run1-1_model_a-01-job.out.txt"'
    assert reply.headers["content-disposition"] == name


def test_a_file_has_a_harmless_name(run, reader):
    run.writes_log("1/model_a", "job", "#!/bin/sh\n")
    reply = reader.get(f"{RUN}/log/file?id=1/model_a&file=job")
    said = reply.headers["content-disposition"]
    assert re.fullmatch(r'attachment; filename="[A-Za-z0-9._-]+\.txt"', said)
    assert Path(said).name == said


def test_an_empty_log_is_an_empty_file_and_none_is_not_there(run, reader):
    run.writes_log("1/model_a", "job.out", "")
    assert reader.get(f"{RUN}/log/file?id=1/model_a").body == b""
    assert reader.get(f"{RUN}/log/file?id=1/model_a&file=err").status == 404
