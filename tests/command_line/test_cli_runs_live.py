"""Looking and acting while a run is on: from another terminal, and from its own jobs."""

import json
import os
import re
import signal

import pytest

from tests.support.many_commands import answers

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

        released = tidewheel("release", "1/second", "--run")
        assert released.out == "1/second runs now in flow 1\n"
        driven = "a scheduler drives flow/run1, so --run waits for nothing; watch it: tidewheel"
        assert driven in released.err
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
        assert "-        script = true" in said and "templates rendered" not in said

        tidewheel("reload", "flow", "-s", 'NEXT="third"')
        newest = tidewheel("show", "flow", "--versions", "--json").json["versions"]
        assert [one["version"] for one in newest] == [3, 2, 1]
        assert newest[0]["who"] and newest[2] == first
        said = tidewheel("show", "flow", "--diff", "2", "3").out
        assert "+++ 3/(definition, templates rendered)" in said and "flow.cylc" not in said
        assert "+        R1 = first => third" in said
        assert "VERSION" in tidewheel("show", "flow", "--versions").out
        unknown = tidewheel("show", "flow", "--diff", "1", "7")
        assert "has no version 7" in unknown.err and "Its versions: 1, 2, 3" in unknown.err
        assert "two versions" in tidewheel("show", "flow", "--diff", "1").err
        tidewheel("stop", "--kill")
        running.wait()
    assert "+++ 3/" in tidewheel("show", "flow", "--diff").out


def test_a_program_that_became_executable_reaches_its_run_by_reload(tidewheel):
    folder = tidewheel.folder / "flow"
    (folder / "bin").mkdir(parents=True)
    (folder / "flow.cylc").write_text(
        "[scheduling]\n    [[graph]]\n        R1 = a\n[runtime]\n    [[a]]\n"
        "        script = predict\n"
    )
    (folder / "bin" / "predict").write_text("#!/bin/sh\necho predicted\n")
    with tidewheel.started("run", "flow") as running:
        running.read_until("stalled")
        (folder / "bin" / "predict").chmod(0o755)
        tried = tidewheel("reload", "flow", "--dry-run").out
        assert "bin/predict is now executable" in tried, tried
        assert tidewheel("reload", "flow").out == (
            "flow/run1 continues with the new definition\n"
        )
        assert "bin/predict is now executable" in tidewheel("show", "flow", "--diff").out
        tidewheel("trigger", "flow", "1/a")
        assert running.wait().status == 0
    assert tidewheel("log", "flow", "1/a").out == "predicted\n"


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


IN_PYTHON = """
from tidewheel import Workflow

flow = Workflow("etl")

@flow.task
def load():
    raise ValueError("bad row")

with flow.cycle("R1"):
    flow.place(load)
"""


def test_who_repairs_a_stall_is_told_of_changes_that_the_run_does_not_have(tidewheel):
    program = tidewheel.folder / "flow" / "bin" / "predict"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/bash\nexit 1\n")
    program.chmod(0o755)
    (program.parents[1] / "flow.cylc").write_text(
        "[scheduling]\n[[graph]]\nR1 = model\n[runtime]\n[[model]]\nscript = predict\n"
    )
    said = "/flow has changed since flow/run1 read it, and its jobs start without the changes"
    looks = (("show",), ("why",), ("why", "1/model"), ("trigger", "1/model"))
    with tidewheel.started("run", "flow") as running:
        waits = running.read_until("then stops, at")
        assert waits.endswith("; if you change the definition: tidewheel reload flow/run1\n")
        assert not [one for one in looks if said in tidewheel(*one).err]
        running.read_until("then stops, at")
        program.write_text("#!/bin/bash\nexit 0\n")
        assert [one for one in looks if said in tidewheel(*one).err] == list(looks)
        running.read_until("then stops, at")
        assert tidewheel("reload").status == 0
        assert said not in tidewheel("trigger", "1/model").err
        assert running.wait().status == 0


def test_a_file_in_python_has_changed_only_if_it_was_written_anew(tidewheel):
    """What is stored of it is a flow.cylc besides, which its folder does not have."""
    file = tidewheel.folder / "etl.py"
    file.write_text(IN_PYTHON)
    said = "/etl.py has changed since etl/run1 read it"
    with tidewheel.started("run", "etl.py") as running:
        running.read_until("then stops, at")
        assert said not in tidewheel("show").err
        file.write_text(IN_PYTHON.replace("raise ValueError", "print"))
        assert said in tidewheel("show").err
        assert tidewheel("reload").status == 0
        (tidewheel.folder / "flow.cylc").write_text("[scheduling]\n")  # of something else
        assert said not in tidewheel("trigger", "1/load").err
        assert running.wait().status == 0
    again = tidewheel("trigger", "etl", "1/load", "--run")
    assert again.status == 0 and "has changed" not in again.out + again.err


def test_who_commands_a_run_whose_scheduler_was_killed_is_told_to_resume_it(tidewheel):
    """The advice was to look at the history of a command that nobody would ever obey."""
    folder = tidewheel.folder / "flow"
    folder.mkdir()
    (folder / "flow.cylc").write_text(FLOW)
    soon = {"TIDEWHEEL_SCHEDULER_LEASE_SECONDS": "4"}
    with tidewheel.started("run", "flow", "--pause", **soon) as running:
        running.read_until("paused")
        running.send(signal.SIGKILL)
        running.wait(None)
    silent = tidewheel("stop", "flow", "--timeout", "8s")
    assert silent.status != 0
    assert "is gone" in silent.err and "tidewheel run flow/run1" in silent.err


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


FORGOTTEN = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 3
    [[graph]]
        P1 = a[-P1] => a => b
[runtime]
    [[a]]
        script = test $CYLC_TASK_CYCLE_POINT != 2
    [[b]]
        script = true
"""


@pytest.mark.parametrize(
    "command",
    [("remove", "forgotten", "2/a", "--forget"), ("stop", "forgotten", "--flow", "1")],
)
def test_a_run_that_completes_because_a_task_left_it_counts_the_task_as_skipped(
    tidewheel, command
):
    """The tasks after it are in no pool: nothing else would say that they did not run."""
    folder = tidewheel.folder / "forgotten"
    folder.mkdir()
    (folder / "flow.cylc").write_text(FORGOTTEN)
    with tidewheel.started("run", "forgotten", "--fail-on", "skipped") as running:
        running.read_until("waits 1h for you")
        assert tidewheel(*command).status == 0
        done = running.wait()
    assert "completed after" in done.out and "1 failed, 2 succeeded, 1 skipped" in done.out
    assert done.status == 1
    assert "completed, 1 skipped" in tidewheel("runs").out
    why = tidewheel("why", "forgotten", "3/a").out
    assert "2/a:succeeded" in why and "clears on its own" not in why


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


RETRIES = """
[scheduling]
    [[graph]]
        R1 = \"\"\"
            fetch => use
            keeps_it_going
        \"\"\"
[runtime]
    [[fetch]]
        script = false
        execution retry delays = PT1H
    [[use]]
        run mode = skip
    [[keeps_it_going]]
        script = until test -e "$CYLC_WORKFLOW_SHARE_DIR/go"; do sleep 0.05; done
"""


def test_a_failure_set_by_hand_stops_the_retry_and_stalls_the_run(tidewheel):
    folder = tidewheel.folder / "retries"
    folder.mkdir()
    (folder / "flow.cylc").write_text(RETRIES)
    with tidewheel.started("run", "retries", "--stall-timeout", "0") as running:
        running.read_until("retry 1 of 1")
        assert tidewheel("set", "1/fetch", "--out", "failed").out == (
            "1/fetch was set in flow 1\n  1/fetch failed, which nothing handles\n"
        )
        [task] = tidewheel("show", "1/fetch", "--json").json["tasks"]
        assert (task["state"], task["remarks"]) == ("failed", ["incomplete"])
        (tidewheel.state / "runs/retries/run1/share/go").touch()
        done = running.wait()
    assert (done.status, "use started" in done.out) == (1, False)


PATIENT = """
[scheduler]
    [[events]]
        stall timeout = PT1S
        abort on stall timeout = False
[scheduling]
    [[graph]]
        R1 = fetch => use
[runtime]
    [[fetch]]
        script = false
    [[use]]
        run mode = skip
"""


def test_a_stalled_run_that_its_timeout_does_not_stop_says_nothing_of_a_stop(tidewheel):
    folder = tidewheel.folder / "patient"
    folder.mkdir()
    (folder / "flow.cylc").write_text(PATIENT)
    with tidewheel.started("run", "patient") as running:
        running.read_until("read what its job wrote")
        assert tidewheel("show", "--json").json["stall"]["until"] is None
        assert "stops at" not in tidewheel("show").out
        tidewheel("set", "1/fetch")
        done = running.wait()
    assert (done.status, "then stops" in done.out) == (0, False)


GROWS = """
[scheduling]
    cycling mode = integer
    final cycle point = 2
    [[graph]]
        P1 = \"\"\"
            a[-P1] => a => b
            b[-P1] => b
        \"\"\"
[runtime]
    [[a]]
        script = true
    [[b]]
        script = \"\"\"
            test $CYLC_TASK_CYCLE_POINT = 1 ||
            until test -e "$CYLC_WORKFLOW_SHARE_DIR/go"; do sleep 0.05; done
        \"\"\"
    [[c]]
        script = true
"""


def test_tasks_that_a_reload_brings_too_late_are_named_by_it_its_dry_run_and_the_end(tidewheel):
    folder = tidewheel.folder / "grows"
    folder.mkdir()
    (folder / "flow.cylc").write_text(GROWS)
    told = (
        "1/c, 2/c will not run by themselves: what they need was done before this reload; to "
        "run them: trigger 1/c 2/c"
    )
    late = "does not run by itself: what it needs was done before a reload added it"
    with tidewheel.started("run", "grows") as running:
        running.read_until("2/b started")
        (folder / "flow.cylc").write_text(GROWS.replace("a => b", "a => b & c"))
        tried = tidewheel("reload", "grows", "--dry-run")
        assert f"  {told}\n" in tried.out
        assert told in tidewheel("reload", "grows", "--dry-run", "--json").json["notices"]
        assert tidewheel("reload", "grows").out.splitlines()[1:] == [f"  {told}"]
        assert f"2/c {late}" in tidewheel("why", "grows", "2/c").out
        assert tidewheel("trigger", "grows", "1/c").status == 0
        (tidewheel.state / "runs/grows/run1/share/go").touch()
        done = running.wait()
    assert done.status == 0
    assert f"{told}\n" in done.out
    assert "completed after" in done.out and "5 succeeded, 1 skipped" in done.out
    assert f"warning: 2/c {late}\n" in done.out
    [one] = tidewheel("show", "grows", "--json").json["lost"]
    assert (one["id"], one["chain"]) == ("2/c", f"2/c {late}")
    assert f"2/c {late}" in tidewheel("why", "grows", "2/c").out


HELD = """
[scheduling]
    [[graph]]
        R1 = first => second => third
[runtime]
    [[first]]
        script = true
    [[second]]
        script = until test -e "$CYLC_WORKFLOW_SHARE_DIR/go"; do sleep 0.05; done
    [[third]]
        script = true
"""


def test_commands_that_change_nothing_say_so(tidewheel):
    folder = tidewheel.folder / "held"
    folder.mkdir()
    (folder / "flow.cylc").write_text(HELD)
    with tidewheel.started("run", "held") as running:
        running.read_until("second started")
        refused = tidewheel("hold", "1/first")
        assert refused.status == 2
        assert "1/first: it has ended and does not run again by itself" in refused.err
        assert tidewheel("hold", "1/third").out == "1/third is held\n"
        again = tidewheel("hold", "1/third")
        assert (again.status, again.out) == (0, "1/third is unchanged: it is held already\n")
        answer = tidewheel("hold", "1/third", "--json").json["answer"]
        assert answer["unchanged"] == {"1/third": "it is held already"}
        assert tidewheel("release", "1/third").out == "1/third is released\n"
        assert "is unchanged: it is not held" in tidewheel("release", "1/third").out
        assert "held/run1 is unchanged\n  nothing was held" in tidewheel("release", "--all").out
        assert "is unchanged\n  it is not paused" in tidewheel("resume", "held").out

        nothing = "held/run1 is unchanged\n  no setting is broadcast\n"
        assert tidewheel("broadcast", "held", "--clear").out == nothing
        assert tidewheel("broadcast", "held", "-s", "[environment]X=1").status == 0
        some = tidewheel("broadcast", "held", "-c", "[environment]X", "-c", "[environment]Y")
        assert "[environment]Y was not broadcast, so it was not cancelled" in some.out
        assert tidewheel("broadcast", "held", "-s", "[environment]X=1").status == 0
        other = tidewheel("broadcast", "held", "--cancel", "[environment]Y")
        assert "no broadcast setting matches; these are set: */root [environment]X" in other.out
        answer = tidewheel("broadcast", "held", "--cancel", "[environment]Y", "--json").json
        assert (answer["answer"]["broadcasts"], answer["answer"]["changed"]) == ([], False)
        (tidewheel.state / "runs/held/run1/share/go").touch()
        assert running.wait().status == 0


def test_a_command_that_could_act_on_some_tasks_only_is_not_wholly_done(tidewheel):
    folder = tidewheel.folder / "held"
    folder.mkdir()
    (folder / "flow.cylc").write_text(HELD)
    with tidewheel.started("run", "held") as running:
        running.read_until("second started")
        commands = [
            ["hold", "1/first", "1/third", "--dry-run"],
            ["hold", "1/first", "1/third"],
            ["hold", "1/first", "1/third", "--json"],
            ["remove", "1/first", "1/third"],
            ["kill", "1/second", "1/first"],
        ]
        tried, held, again, removed, killed = answers(tidewheel, commands)
        ended = "1/first is unchanged: it has ended and does not run again by itself\n"
        assert tried.status == 0
        assert ended.replace("is", "would be", 1) in tried.out
        assert (held.status, held.out) == (1, f"{ended}1/third is held\n")
        assert held.err == "hold had no effect on 1/first\n"
        assert (again.status, again.err) == (1, "")
        assert again.json["answer"]["refused"] == ["1/first"]
        assert (removed.status, removed.err) == (1, "remove had no effect on 1/third\n")
        assert killed.status == 2  # of what is not in the pool, nothing was done for any
        tidewheel("release", "--all")
        (tidewheel.state / "runs/held/run1/share/go").touch()
        assert running.wait().status == 0


def test_a_run_that_waits_for_release_says_what_is_held_and_how_to_release_it(tidewheel):
    folder = tidewheel.folder / "kept"
    folder.mkdir()
    (folder / "flow.cylc").write_text(HELD.replace("first => second => third", "first & third"))
    with tidewheel.started("run", "kept", "--pause") as running:
        running.read_until("paused")
        assert tidewheel("hold", "1/third").status == 0
        assert tidewheel("resume", "kept").status == 0
        running.read_until("tidewheel release kept/run1 1/third")
        why = tidewheel("why", "kept").out
        assert "  1/third is held (needs action)\n" in why
        assert tidewheel("release", "1/third").status == 0
        done = running.wait()
    assert "waiting for release:\n" in done.out and "  1/third is held\n" in done.out


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_while_the_store_is_gone_is_answered_at_once_and_obeyed(tidewheel, presses):
    """The first stops the run when the store is back; the second waits for no store."""
    folder, gate = tidewheel.folder / "flow", tidewheel.folder / "gate"
    folder.mkdir()
    os.mkfifo(gate)
    (folder / "flow.cylc").write_text(f"""
[scheduling]
    [[graph]]
        R1 = first => second
[runtime]
    [[first]]
        script = echo begun; read -r word < {gate}
    [[second]]
        script = true
""")
    store = tidewheel.state / "tidewheel.db"
    away = store.with_name("away.db")
    with tidewheel.started("run", "flow") as running:
        running.read_until("first started")
        store.rename(away)
        running.read_until("trying again until it works; running jobs continue")
        running.send(signal.SIGINT)
        said = running.read_until("stopping")
        assert "waiting for the store, then for 1 job; Ctrl-C again exits now" in said
        if presses == 2:
            running.send(signal.SIGINT)
            assert running.wait().status == 130
            away.rename(store)
        else:
            away.rename(store)
            running.read_until("the store can be used again, after ")
        gate.write_text("go\n")
        ended = running.wait()
    told = [line for line in ended.out.splitlines() if "trying again" in line]
    assert (ended.status, len(told)) == (130, 1), "one message for one cause"
    if presses == 1:
        assert "run1 stopped" in ended.out and "second started" not in ended.out
