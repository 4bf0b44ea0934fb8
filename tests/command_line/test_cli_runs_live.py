"""Looking and acting while a run is on: from another terminal, and from its own jobs."""

import json
import re

import pytest

FLOW = """
[scheduling]
    [[graph]]
        R1 = first => second => third
[runtime]
    [[first]]
        script = \"\"\"
            echo hello
            tidewheel message "WARNING: late" --progress 0.5
            tidewheel message "$CYLC_WORKFLOW_ID" "$CYLC_TASK_JOB" "said twice"
            tidewheel show --json > "$CYLC_WORKFLOW_SHARE_DIR/show.json"
            tidewheel why "$CYLC_WORKFLOW_ID//1/third" > "$CYLC_WORKFLOW_SHARE_DIR/why"
            tidewheel hold 1/second
            tidewheel trigger other 1/second 2> "$CYLC_WORKFLOW_SHARE_DIR/refused" || true
        \"\"\"
    [[second, third]]
        script = true
"""


@pytest.fixture
def flow(tidewheel):
    folder = tidewheel.folder / "flow"
    folder.mkdir()
    (folder / "flow.cylc").write_text(FLOW)
    return "flow"


def test_a_job_looks_and_acts_through_its_worker_and_others_from_outside(tidewheel, flow):
    with tidewheel.started("run", flow) as running:
        running.read_until("first succeeded")
        share = tidewheel.state / "runs" / "flow" / "run1" / "share"
        assert '"name": "flow/run1"' in (share / "show.json").read_text()
        assert "1/third needs 1/second:succeeded" in (share / "why").read_text()
        refused = (share / "refused").read_text()
        assert "a job may act on its own run, flow/run1, not on other" in refused

        assert tidewheel("log", "1/first").out.startswith("hello\n")
        [task] = tidewheel("show", "1/first", "--json").json["tasks"]
        said = [one["text"] for one in task["submissions"][0]["messages"]]
        assert said == ["WARNING: late", "said twice"]
        [command] = tidewheel("show", "--history", "--json").json["commands"]
        assert (command["who"], command["verb"]) == ("job 1/first/01", "hold")
        [task] = tidewheel("show", "1/second", "--json").json["tasks"]
        assert task["remarks"] == ["held"]

        assert tidewheel("release", "1/second").out == "1/second runs now in flow 1\n"
        assert running.wait().status == 0
    assert tidewheel("runs", "--json").json["runs"][0]["status"] == "completed"
    refused = tidewheel("hold", "1/second")
    assert refused.status == 2
    assert "tidewheel run flow/run1" in refused.err
    kept = tidewheel("trigger", "1/second")
    assert kept.status == 0
    assert "trigger is kept" in kept.out and "tidewheel run flow/run1" in kept.out


def test_stop_and_reload_from_another_terminal(tidewheel, flow):
    with tidewheel.started("run", flow) as running:
        running.read_until("first succeeded")
        file = tidewheel.folder / "flow" / "flow.cylc"
        text = file.read_text().replace("=> third", "=> third => fourth")
        file.write_text(text.replace("[[second, third]]", "[[second, third, fourth]]"))
        reloaded = tidewheel("reload")
        assert reloaded.status == 0, reloaded.err
        assert "1/fourth" in tidewheel("show", "1/fourth").out
        assert tidewheel("stop").out.startswith("flow/run1 stops")
        running.wait()
    page = tidewheel("show", "--json").json
    assert (page["run"]["status"], page["run"]["driven"]) == ("stopped", False)


TEMPLATED = """#!jinja2
[scheduling]
    [[graph]]
        R1 = first => {{ NEXT | default("second") }}
[runtime]
    [[first]]
        script = until test -e "$CYLC_WORKFLOW_SHARE_DIR/go"; do sleep 0.05; done
    [[second, third]]
        script = true
"""


def test_each_reload_of_a_run_is_a_version_that_can_be_compared(tidewheel):
    folder = tidewheel.folder / "flow"
    folder.mkdir()
    (folder / "flow.cylc").write_text(TEMPLATED)
    with tidewheel.started("run", "flow") as running:
        running.read_until("first started")
        never = tidewheel("show", "flow", "--diff")
        assert never.status == 2 and "flow/run1 was never reloaded" in never.err
        [first] = tidewheel("show", "flow", "--versions", "--json").json["versions"]
        assert (first["version"], first["who"]) == (1, "")

        (folder / "flow.cylc").write_text(TEMPLATED.replace("script = true", "script = false"))
        tried = tidewheel("reload", "flow", "-s", 'NEXT="third"', "--dry-run").out
        assert "-        R1 = first => second" in tried, tried
        assert "+        R1 = first => third" in tried and "+        script = false" in tried
        assert "nothing was done" in tried
        assert len(tidewheel("show", "flow", "--versions", "--json").json["versions"]) == 1

        assert tidewheel("reload", "flow").status == 0
        said = tidewheel("show", "flow", "--diff").out
        assert "--- 1/flow.cylc" in said and "+++ 2/flow.cylc" in said
        assert "-        script = true" in said and "after templates" not in said

        tidewheel("reload", "flow", "-s", 'NEXT="third"')
        newest = tidewheel("show", "flow", "--versions", "--json").json["versions"]
        assert [one["version"] for one in newest] == [3, 2, 1]
        assert newest[0]["who"] and newest[2] == first
        said = tidewheel("show", "flow", "--diff", "2", "3").out
        assert "+++ 3/(definition after templates)" in said and "flow.cylc" not in said
        assert "+        R1 = first => third" in said
        assert "VERSION" in tidewheel("show", "flow", "--versions").out
        unknown = tidewheel("show", "flow", "--diff", "1", "7")
        assert "has no version 7" in unknown.err and "It has 1, 2, 3" in unknown.err
        assert "two versions" in tidewheel("show", "flow", "--diff", "1").err
        tidewheel("stop", "--kill")
        running.wait()
    assert "+++ 3/" in tidewheel("show", "flow", "--diff").out


WAITS = """
[scheduling]
    [[graph]]
        R1 = slow
[runtime]
    [[slow]]
        script = \"\"\"
            echo one
            until test -e "$CYLC_WORKFLOW_SHARE_DIR/go"; do sleep 0.05; done
            echo two
        \"\"\"
"""


def test_a_log_is_followed_until_the_job_has_ended(tidewheel):
    folder = tidewheel.folder / "waits"
    folder.mkdir()
    (folder / "flow.cylc").write_text(WAITS)
    with tidewheel.started("run", "waits") as running:
        running.read_until("slow started")
        with tidewheel.started("log", "1/slow", "-f") as log:
            log.read_until("one")
            (tidewheel.state / "runs" / "waits" / "run1" / "share" / "go").touch()
            assert log.wait().out == "one\ntwo\n"
        assert running.wait().status == 0


UNDONE = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 40
    [[graph]]
        P1 = \"\"\"
            a => b => c
            a:fail => mail
            x? => y
            x:fail? => z
        \"\"\"
[runtime]
    [[a, x]]
        script = test $CYLC_TASK_CYCLE_POINT != 2
    [[b, c, mail, y, z]]
        run mode = skip
"""


def test_a_run_that_completes_with_tasks_undone_says_how_many(tidewheel):
    """Also of points that its scheduler has long forgotten; z at other points is not taken."""
    folder = tidewheel.folder / "undone"
    folder.mkdir()
    (folder / "flow.cylc").write_text(UNDONE)
    with tidewheel.started("run", "undone", "--pause") as running:
        running.read_until("paused")
        assert tidewheel("remove", "undone", "1/x").status == 0
        assert tidewheel("resume", "undone").status == 0
        done = running.wait()
    assert done.status == 0
    last = next(line for line in done.out.splitlines() if " completed after " in line)
    assert last.endswith("4 lost, 1 skipped")
    [listed] = tidewheel("runs", "--json").json["runs"]
    assert listed["undone"] == {"lost": 4, "skipped": 1}
    assert "completed, 4 lost, 1 skipped" in tidewheel("runs").out
    assert "completed, 4 lost, 1 skipped" in tidewheel("show", "undone").out
    assert tidewheel("tree", "undone").out.startswith("undone/run1  completed, 4 lost, 1 sk")
    for kinds, status in ((["lost"], 1), (["skipped"], 0), (["skipped", "lost"], 1)):
        words = [word for kind in kinds for word in ("--fail-on", kind)]
        again = tidewheel("run", "undone", "--new", "--fcp", "3", *words, "--json")
        assert again.status == status
        told = [json.loads(line) for line in again.out.splitlines()]
        assert told[-1]["undone"] == {"lost": 3, "skipped": 0}
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", one["at"]) for one in told)


def test_the_picture_on_a_terminal_counts_only_what_succeeded_as_done(tidewheel):
    """At point 10, which stands below point 9, two tasks fail and three are lost."""
    folder = tidewheel.folder / "undone"
    folder.mkdir()
    (folder / "flow.cylc").write_text(UNDONE.replace("!= 2", "!= 10"))
    shown = tidewheel.on_terminal("run", "undone", "--icp", "9", "--fcp", "10").out
    bars = re.findall(r" (\d+) (\S+) (\d done.*), 0 in the pool", shown)
    assert [(point, "─" in bar, ends) for point, bar, ends in bars[-2:]] == [
        ("9", False, "5 done"),
        ("10", True, "2 done, 2 failed, 3 lost"),
    ]
