"""Commands that look: tasks, task, queues, workers, verify, export; for people and programs."""

import json
import os
import signal
import stat
from contextlib import closing

import apsw
import pytest

EVIL = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\r"
CONTROLS = "\x1b\x07\u202e\r"


def worked(tidewheel, *arguments):
    task_id = tidewheel("submit", *arguments).word
    tidewheel("worker", "--exit-when-idle")
    return task_id


# ---- tasks ----


@pytest.mark.req("R002-29")
def test_tasks_are_filtered_by_words_of_all_vocabularies(tidewheel):
    worked(tidewheel, "--id", "good", "--tag", "t", "--", "true")
    worked(tidewheel, "--id", "bad", "--", "false")
    tidewheel("submit", "--id", "later", "--queue", "q", "--name", "n", "--", "true")

    def ids(*filters):
        return [task["id"] for task in tidewheel("tasks", "--json", *filters).json["tasks"]]

    assert ids() == ["later", "bad", "good"]
    assert ids("--status", "succeeded") == ids("--status", "completed") == ["good"]
    assert ids("--status", "terminated") == ["bad", "good"]
    assert ids("--status", "aborted", "--status", "available") == ["later", "bad"]
    assert ids("--tag", "t", "--worker", "worker-1", "--queue", "default") == ["good"]
    assert ids("--queue", "q") == ids("--name", "n") == ["later"]
    assert tidewheel("tasks", "--queue", "none").err == "no tasks match\n"


def test_pages_of_tasks_follow_each_other(tidewheel):
    lines = "".join(f'{{"id": "{n}", "command": "true"}}\n' for n in range(3))
    tidewheel("submit", "--file", "-", stdin=lines)
    first = tidewheel("tasks", "--limit", "2", "--json").json
    before = str(first["next_before"])
    second = tidewheel("tasks", "--limit", "2", "--before", before, "--json").json
    assert [task["id"] for task in first["tasks"]] == ["2", "1"]
    assert ([task["id"] for task in second["tasks"]], second["next_before"]) == (["0"], None)
    assert f"older tasks: --before {before}" in tidewheel("tasks", "--limit", "2").err


@pytest.mark.req("R002-14", "R002-18", "R002-22")
def test_tasks_in_the_words_of_other_systems(tidewheel):
    worked(tidewheel, "--id", "a", "--", "true")
    [scylla] = tidewheel("tasks", "--vocabulary", "scylla").json["tasks"]
    assert (scylla["rn"], scylla["status"], scylla["owner"]) == ("a", "completed", "worker-1")
    assert [entry["_typ"] for entry in scylla["history"]] == ["TaskAssignment"]
    assert scylla["created"].endswith("Z")
    [banyan] = tidewheel("tasks", "--vocabulary", "banyan").json["tasks"]
    assert (banyan["_id"], banyan["state"], banyan["retry_count"]) == ("a", "terminated", 1)
    assert banyan["execution_info"]["exit_status"] == 0


def test_watching_shows_changes_until_interrupted(tidewheel):
    tidewheel("submit", "--id", "a", "--", "true")
    with tidewheel.started("tasks", "--watch") as watching:
        watching.read_until("a  ready")
        tidewheel("cancel", "a")
        watching.read_until("a  cancelled")
        watching.send(signal.SIGINT)
        assert watching.wait().status == 0


# ---- one task ----


def test_a_page_tells_everything_about_a_task(tidewheel):
    command = "tidewheel message --output data here; echo oh >&2; exit 3"
    options = ["--id", "a", "--name", "first", "--retries", "1", "--command", command]
    tidewheel("submit", *options)
    tidewheel("submit", "--id", "b", "--needs", "a:data", "--", "true")
    tidewheel("worker", "--exit-when-idle")
    page = tidewheel("task", "first").out
    for line in (
        "task a  failed",
        "  name        first",
        f"  command     {command}",
        "  retries     1 of 1 used; delays: 0ms",
        "  error       exit: exit status 3; last line of job.err: oh",
        "needed by",
        "attempts",
        "messages and outputs",
        "history",
        "logs",
    ):
        assert line in page.splitlines()
    document = tidewheel("task", "a", "--json").json
    assert [one["ended_by"] for one in document["attempts"]] == ["retry", "fail"]
    assert [one["signal"] for one in document["history"]] == [
        None,
        "claim",
        "retry",
        "claim",
        "fail",
    ]
    assert {one["output"] for one in document["outputs"]} == {"data"}
    assert document["needed_by"][0] | {"child": "b", "state": "met"} == document["needed_by"][0]
    assert len(document["logs"]) == 4
    assert tidewheel("task", "a", "--log", "err", "--attempt", "1").out == "oh\n"


def test_a_page_says_why_the_task_does_not_run(tidewheel):
    tidewheel("submit", "--id", "a", "--label", "gold", "--", "true")
    tidewheel("submit", "--id", "b", "--needs", "a", "--", "true")
    page = tidewheel("task", "b").out
    assert "why it does not run\n  It waits for task a to succeed; that task is ready." in page
    with tidewheel.started("worker") as worker:
        worker.read_until("worker.registered")
        [why] = tidewheel("task", "a", "--json").json["why"]
        how = "tidewheel worker --queue default --label gold"
        assert why == f"No worker offers the label 'gold'; start a worker: {how}"
    tidewheel("queues", "default", "--pause")
    assert "Queue 'default' is paused" in tidewheel("task", "a").out


@pytest.mark.req("R002-28")
@pytest.mark.parametrize("command", [["task", "nope"], ["cancel", "nope"]])
def test_an_unknown_task_is_refused_in_two_lines(tidewheel, command):
    refused = tidewheel(*command)
    assert refused.status == 2
    assert refused.err == (
        "tidewheel: there is no task 'nope' in this store\n  List all tasks: tidewheel tasks\n"
    )
    error = json.loads(tidewheel("--json", *command).err)["error"]
    assert error["code"] == "not_found"


def test_a_log_is_followed_to_its_end(tidewheel):
    gate = tidewheel.folder / "gate"
    os.mkfifo(gate)
    command = f"echo one; cat {gate}; echo two"
    tidewheel("submit", "--id", "a", "--command", command)
    with tidewheel.started("worker") as worker:
        worker.read_until("job.started")
        with tidewheel.started("task", "a", "--log", "out", "--follow") as following:
            following.read_until("one")
            gate.write_text("opened\n")
            ended = following.wait()
    assert (ended.status, ended.out) == (0, "one\nopened\ntwo\n")


def test_a_log_that_is_not_here_is_refused(tidewheel):
    task_id = tidewheel("submit", "--", "true").word
    refused = tidewheel("task", task_id, "--log", "out")
    assert (refused.status, "has had no attempt yet" in refused.err) == (2, True)
    assert tidewheel("task", task_id, "--follow").status == 2
    tidewheel("cancel", task_id)
    ended = tidewheel("task", task_id, "--log", "out")
    assert "has had no attempt\n  It has ended, so there will be no other" in ended.err


# ---- S12 ----


def test_nothing_that_users_or_jobs_write_reaches_the_terminal_unescaped(tidewheel):
    (tidewheel.folder / "evil").write_text(EVIL)
    tidewheel(
        "submit", "--id", "a", "--command", f"cat {tidewheel.folder}/evil; exit 1 # {EVIL}"
    )
    evil = f"$(cat {tidewheel.folder}/evil)"
    message = f'tidewheel message "{evil}"; echo "{evil}" >&2; exit 1'
    tidewheel("submit", "--id", "b", "--command", message, "--spec", json.dumps(EVIL))
    shown = tidewheel("worker", "--exit-when-idle").out
    for command in (
        ["tasks"],
        ["tasks", "--json"],
        ["task", "a"],
        ["task", "b"],
        ["task", "a", "--log", "out"],
        ["task", "b", "--log", "err"],
    ):
        shown += tidewheel(*command).out
    assert "\\x1b" in shown
    assert "\\u202e" in shown
    assert not set(CONTROLS) & set(shown)


def test_escape_sequences_do_not_pass_a_terminal_either(tidewheel):
    tidewheel("submit", "--id", "a", "--command", f"echo [red]markup[/red] {EVIL}")
    shown = tidewheel.on_terminal("tasks", columns=200).out
    assert "[red]markup[/red]" in shown
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown


# ---- queues and workers ----


def test_who_pauses_a_new_queue_of_nearly_the_name_of_another_is_told_of_it(tidewheel):
    said = "lately; the settings apply to future tasks; did you mean images?"
    assert said not in tidewheel("queues", "images", "--pause").err
    assert said in tidewheel("queues", "imgaes", "--pause").err
    assert said not in tidewheel("queues", "imgaes", "--resume").err


def test_a_queue_is_paused_configured_and_shown(tidewheel):
    changed = tidewheel(
        *("queues", "q", "--pause", "--aging", "--fair", "--fence-kill", "--lease", "30s"),
        *("--limit", "4", "--limit", "k=1", "--rate", "*=10/1m"),
    )
    assert changed.status == 0
    assert "no task was in the queue q lately" in changed.err  # perhaps it is misspelt
    assert not tidewheel("queues", "q", "--pause").err
    [queue] = tidewheel("queues", "q", "--json").json["queues"]
    assert queue == {
        "queue": "q",
        "paused": True,
        "aging": True,
        "fair": True,
        "fence_kill": True,
        "lease_seconds": 30.0,
        "limits": [
            {"key": "", "concurrency_max": 4, "rate_max": None, "rate_seconds": 1.0},
            {"key": "*", "concurrency_max": None, "rate_max": 10, "rate_seconds": 60.0},
            {"key": "k", "concurrency_max": 1, "rate_max": None, "rate_seconds": 1.0},
        ],
        "counts": {"waiting": 0, "ready": 0, "running": 0, "cancelling": 0},
        "oldest_ready_seconds": None,
        "failed": 0,
        "failed_more": False,
    }
    shown = tidewheel("queues").out
    assert (
        "aging, fair, fence-kill, at most 4, 10 of each key every 1m, at most 1 of k" in shown
    )
    reopened = tidewheel("queues", "q", "--resume", "--no-aging", "--no-limits", "--json").json
    [queue] = reopened["queues"]
    assert (queue["paused"], queue["aging"], queue["limits"]) == (False, False, [])
    assert queue["fence_kill"] is True


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--pause"], "name the queue to change"),
        (["q", "--limit", "many"], "expected 4 for the queue"),
        (["q", "--rate", "10"], "expected 10/1s for the queue"),
        (["q", "--rate", "10/0s"], "expected 10/1s for the queue"),
        (["q", "--lease", "0"], "lease_seconds is 0.0"),
        (["q", "--limit", "=0", "--rate", "0/1s"], "rate_max is 0\n  Expected 1 or more"),
    ],
)
def test_a_queue_that_cannot_be_so_is_refused(tidewheel, arguments, what):
    refused = tidewheel("queues", *arguments)
    assert (refused.status, len(refused.err.splitlines())) == (2, 2)
    assert what in refused.err


def test_workers_are_listed_with_what_they_offer(tidewheel):
    offered = ["--queue", "a", "--queue", "b", "--slots", "3", "--cpu", "2", "--memory", "1GiB"]
    offered += ["--nodes", "4", "--buffer", "1TB"]
    with tidewheel.started("worker", "--name", "mine", "--label", "gold", *offered) as worker:
        worker.read_until("worker.registered")
        [document] = tidewheel("workers", "--json").json["workers"]
        assert (document["name"], document["queues"]) == ("mine", ["a", "b"])
        assert (document["slots"], document["leases"]) == (3, 0)
        assert document["capacity"] == {
            "cpu": 2.0,
            "memory_bytes": 2**30,
            "gpu": 0,
            "labels": ["gold"],
            "nodes": 4,
            "exclusive": False,
            "buffer_bytes": 10**12,
            "flavours": [],
        }
        assert "live" in tidewheel("workers").out
        worker.send(signal.SIGTERM)
        assert worker.wait().status == 0
    assert "no workers" in tidewheel("workers").err
    assert "stopped" in tidewheel("workers", "--all").out


def test_workers_say_for_how_long_a_killed_worker_has_been_silent(tidewheel):
    with tidewheel.started("worker", "--no-monitor") as worker:
        worker.read_until("worker.registered")
        worker.send(signal.SIGKILL)
        worker.wait()
    for seconds, said in ((14, "live"), (16, "silent for 16s"), (80, "silent for 1m 20s")):
        with closing(apsw.Connection(str(tidewheel.state / "tidewheel.db"))) as store:
            store.execute("UPDATE worker SET seen_at = unixepoch('subsec') - ?", [seconds])
        assert said in tidewheel("workers").out


# ---- backup ----


def test_a_backup_is_a_store_that_was_copied_while_another_process_writes(tidewheel):
    tidewheel("submit", "--id", "kept", "--", "true")
    with closing(apsw.Connection(str(tidewheel.state / "tidewheel.db"))) as writer:
        writer.execute("BEGIN IMMEDIATE; DELETE FROM task")
        answer = tidewheel("backup", "copy.db", "--json")
        writer.execute("ROLLBACK")
    copy = tidewheel.folder / "copy.db"
    assert answer.json == {
        "file": str(copy),
        "bytes": copy.stat().st_size,
        "store": tidewheel.store,
    }
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert list(tidewheel.folder.iterdir()) == [copy], "nothing else is left"
    store = f"sqlite:///{copy}"
    assert tidewheel("verify", "--store", store).status == 0
    [task] = tidewheel("tasks", "--store", store, "--json").json["tasks"]
    assert task["id"] == "kept"


def test_a_backup_overwrites_nothing_and_a_failed_one_leaves_nothing(tidewheel):
    assert "there is no store" in tidewheel("backup", "copy.db").err
    tidewheel("submit", "--", "true")
    taken = tidewheel.folder / "taken"
    taken.write_text("mine")
    refused = tidewheel("backup", "taken")
    assert refused.status == 2 and "exists, and a backup overwrites nothing" in refused.err
    assert taken.read_text() == "mine"
    assert "is a folder" in tidewheel("backup", ".").err
    assert "cannot be written" in tidewheel("backup", "nowhere/copy.db").err
    file = tidewheel.state / "tidewheel.db"
    content = bytearray(file.read_bytes())
    content[4096:12288] = b"x" * 8192
    file.write_bytes(content)
    damaged = tidewheel("backup", "copy.db")
    assert damaged.status == 3 and "damaged" in damaged.err
    assert list(tidewheel.folder.iterdir()) == [taken]


def test_a_backup_gets_no_name_by_which_sqlite_would_mix_it_with_another_file(tidewheel):
    tidewheel("submit", "--", "true")
    refused = tidewheel("backup", str(tidewheel.state / "tidewheel.db-wal"))
    assert refused.status == 2 and "for a part of the store\n  Name another file" in refused.err
    assert tidewheel("verify").status == 0
    (tidewheel.folder / "copy.db-wal").write_bytes(b"of a copy that was deleted")
    refused = tidewheel("backup", "copy.db")
    assert (
        refused.status == 2 and "copy.db-wal was left behind by another database" in refused.err
    )
    assert not (tidewheel.folder / "copy.db").exists()


def test_a_backup_of_another_store_says_what_makes_it(tidewheel):
    asked = tidewheel("backup", "b.dump", "--store", "postgresql://me:secret@db/tide")
    assert asked.status == 2 and "secret" not in asked.err
    dump = f"--format=custom --file={tidewheel.folder}/b.dump postgresql://me@db/tide\n"
    assert f"pg_dump --schema=tidewheel {dump}" in asked.err
    assert "a backup needs the database itself" in (
        tidewheel("backup", "b.db", "--store", "https://tide.example.org").err
    )


# ---- cancel ----


@pytest.mark.req("R002-25", "R002-68", "R003-38", "R003-39")
def test_cancel_tells_what_it_changed(tidewheel):
    tidewheel("submit", "--id", "a", "--", "true")
    tidewheel("submit", "--id", "b", "--needs", "a", "--", "true")
    assert tidewheel("cancel", "a").out == "a cancelled\n"
    assert tidewheel("cancel", "a", "b").out == "a already cancelled\nb already cancelled\n"
    assert tidewheel("cancel", "a", "--json").json == {
        "cancelled": [{"id": "a", "status": "cancelled", "changed": False}]
    }


def test_cancel_takes_all_that_a_filter_finds(tidewheel):
    for queue in ("q", "q", "r"):
        tidewheel("submit", "--queue", queue, "--", "true")
    cancelled = tidewheel("cancel", "--queue", "q", "--status", "available")
    assert (len(cancelled.out.splitlines()), cancelled.err) == (2, "2 tasks cancelled\n")
    assert tidewheel("cancel").status == 2
    assert tidewheel("cancel", "x", "--queue", "q").status == 2


def test_list_cancel_and_export_find_tasks_by_the_same_names(tidewheel):
    for name in ("fit", "other"):
        tidewheel("submit", "--id", f"{name}-id", "--name", name, "--tag", "t", "--", "true")
    by_name = ("--name", "fit", "--tag", "t")
    [listed] = tidewheel("tasks", *by_name, "--json").json["tasks"]
    assert listed["id"] == "fit-id"
    assert tidewheel("export", "out.jsonl", *by_name, "--json").json["exported"] == 1
    assert tidewheel("export", "none.jsonl", "--worker", "worker-9", "--json").json == {
        "exported": 0,
        "file": "none.jsonl",
    }
    assert tidewheel("cancel", *by_name).out == "fit-id cancelled\n"


def test_a_filter_finds_lists_cancels_and_exports_by_pattern_and_state(tidewheel):
    for name in ("img-1", "img-2", "cal-1"):
        tidewheel("submit", "--id", name, "--", "true")
    assert tidewheel("cancel", "--matching", "img-?:ready").err == "2 tasks cancelled\n"
    listed = tidewheel("tasks", "--matching", "IMG:canc", "--json").json["tasks"]
    assert [one["id"] for one in listed] == ["img-2", "img-1"]
    assert (
        tidewheel("export", "x.jsonl", "--matching", "=cal-1", "--json").json["exported"] == 1
    )
    again = tidewheel("resubmit", "--matching", "*-2", "--dry-run").err
    assert "1 task would be submitted again" in again
    assert tidewheel("tasks", "--matching", "none").err == "no tasks match\n"
    wrong = tidewheel("cancel", "--matching", ":lost")
    assert wrong.status == 2 and "Expected waiting, ready" in wrong.err
    assert tidewheel("tasks", "--matching", ":ready", "--json").json["next_before"] is None


def test_jobs_of_runs_are_listed_when_they_are_asked_for(tidewheel):
    flow = "[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\nscript = true\n"
    folder = tidewheel.folder / "wf"
    folder.mkdir()
    (folder / "flow.cylc").write_text(flow)
    tidewheel("run", "wf")
    tidewheel("submit", "--id", "own", "--", "true")

    def ids(*words):
        return [one["id"] for one in tidewheel("tasks", *words, "--json").json["tasks"]]

    assert ids() == ["own"]
    assert ids("--jobs") == ["own", "wf/run1/1/a/1"]
    assert ids("--queue", "run:wf/run1") == ids("--jobs", "--matching", "wf/*")
    assert ids("--queue", "run:wf/run1") == ["wf/run1/1/a/1"]
    assert [
        one["name"]
        for one in tidewheel("runs", "--matching", "W*:compl", "--json").json["runs"]
    ] == ["wf/run1"]
    assert tidewheel("runs", "--matching", "x*").err == "no run fits the filter\n"


# ---- verify, export, migrate ----


def test_verify_finds_a_broken_promise(tidewheel):
    tidewheel("submit", "--id", "a", "--", "true")
    assert tidewheel("verify").status == 0
    store = apsw.Connection(str(tidewheel.state / "tidewheel.db"))
    store.execute("UPDATE task SET attempt = 3")
    store.close()
    found = tidewheel("verify")
    assert found.status == 1
    assert found.out.splitlines()[0].split() == ["INVARIANT", "TASK", "SEEN"]
    violations = tidewheel("verify", "--json").json["violations"]
    assert {violation["task"] for violation in violations} == {"a"}


def test_verify_lists_files_that_belong_to_nothing_and_removes_them_when_told(tidewheel):
    tidewheel("submit", "--id", "nowhere", "--queue", "nobody's", "--", "true")
    assert (
        "belongs to a run or task in the store" in tidewheel("verify", "--files").out
    )  # no folder at all
    flow = tidewheel.folder / "flow"
    flow.mkdir()
    (flow / "flow.cylc").write_text("[scheduling]\n[[graph]]\nR1 = a\n[runtime]\n[[a]]\n")
    assert tidewheel("run", "flow").status == 0
    worked(tidewheel, "--id", "good", "--", "true")
    assert tidewheel("verify", "--files", "--json").json == {
        "audit": None,
        "violations": [],
        "orphans": [],
        "removed": [],
    }
    known = sorted(path for path in (tidewheel.state / "runs").glob("*/*"))
    orphan = tidewheel.state / "runs" / "gone" / "run7"
    (orphan / "log" / "scheduler").mkdir(parents=True)
    (orphan / "log" / "scheduler" / "log").write_text("12345")
    (orphan / "log" / "config").mkdir()
    store_id = (known[0] / "log" / "config" / "store").read_text()
    (orphan / "log" / "config" / "store").write_text(store_id)
    theirs = tidewheel.state / "runs" / "theirs" / "run1"
    (theirs / "log" / "config").mkdir(parents=True)
    (theirs / "log" / "config" / "store").write_text("another store")
    [tasks] = (tidewheel.state / "tasks").iterdir()
    (tasks / "999" / "1").mkdir(parents=True)
    shown = tidewheel("verify", "--files")
    assert shown.status == 0
    assert "runs/gone/run7" in shown.out and "2 folders" in shown.out
    assert "theirs" not in shown.out
    found = tidewheel("verify", "--files", "--json").json["orphans"]
    assert {one["path"]: (one["bytes"], one["unmarked"]) for one in found} == {
        str(orphan): (5 + len(store_id), False),
        str(tasks / "999"): (0, False),
    }
    assert not any(one["in_use"] for one in found)
    refused = tidewheel("verify", "--files", "--delete")
    assert (refused.status, orphan.exists()) == (2, True)
    assert "--yes" in refused.err
    assert tidewheel("verify", "--delete", "--yes").status == 2
    removed = tidewheel("verify", "--files", "--delete", "--yes", "--json").json["removed"]
    assert sorted(removed) == sorted([str(orphan), str(tasks / "999")])
    assert not orphan.parent.exists() and theirs.exists()
    assert sorted(path for path in (tidewheel.state / "runs").glob("flow/*")) == known
    assert tidewheel("log", "flow").status == 0


def test_verify_removes_files_that_do_not_say_which_store_they_are_of_only_if_told_so(
    tidewheel,
):
    worked(tidewheel, "--id", "good", "--", "true")
    # A worker of a server's run in the same home, of an earlier version, made this one.
    unmarked = tidewheel.state / "runs" / "flow" / "run9"
    (unmarked / "log" / "job").mkdir(parents=True)
    shown = tidewheel("verify", "--files")
    assert "runs/flow/run9" in shown.out
    assert "may belong to another store" in shown.out and "--unmarked" in shown.out
    [found] = tidewheel("verify", "--files", "--json").json["orphans"]
    assert (found["unmarked"], found["in_use"]) == (True, False)
    kept = tidewheel("verify", "--files", "--delete", "--yes", "--json")
    assert (kept.json["removed"], unmarked.exists()) == ([], True)
    assert tidewheel("verify", "--files", "--unmarked", "--yes").status == 2
    removal = ("verify", "--files", "--delete", "--unmarked", "--yes", "--json")
    assert tidewheel(*removal).json["removed"] == [str(unmarked)]


@pytest.mark.req("R002-78")
def test_export_writes_a_line_per_task(tidewheel):
    worked(tidewheel, "--id", "good", "--", "true")
    worked(tidewheel, "--id", "bad", "--", "false")
    exported = tidewheel("export", "out.jsonl", "--status", "failed")
    assert exported.out == "1 task written to out.jsonl\n"
    path = tidewheel.folder / "out.jsonl"
    [line] = path.read_text().splitlines()
    assert json.loads(line)["task"]["id"] == "bad"
    assert path.stat().st_mode & 0o777 == 0o600
    refused = tidewheel("export", "out.jsonl")
    assert (refused.status, "exists already" in refused.err) == (2, True)
    assert tidewheel("export", "out.jsonl", "--append", "--json").json["exported"] == 2
    printed = tidewheel("export", "-").out.splitlines()
    assert [json.loads(line)["task"]["id"] for line in printed] == ["bad", "good"]
    assert tidewheel("export", "nowhere/out.jsonl").status == 2


def test_migrate_has_nothing_to_do_on_a_new_store(tidewheel):
    tidewheel("submit", "--", "true")  # makes it
    assert tidewheel("migrate").status == 0
    assert "nothing to do: the store has schema version" in tidewheel("migrate").out
    report = tidewheel("migrate", "--json").json
    assert report["from_version"] == report["to_version"]


# ---- resubmit ----


def test_tasks_that_failed_are_submitted_again_by_a_filter(tidewheel):
    worked(tidewheel, "--id", "bad", "--tag", "t", "--", "false")
    tidewheel("submit", "--id", "child", "--needs", "bad", "--tag", "t", "--", "true")
    tried = tidewheel("resubmit", "--tag", "t", "--status", "failed", "--dry-run")
    assert "bad would be submitted again as bad~2-" in tried.out
    assert "1 task would be submitted again" in tried.err
    assert (
        "1 task was cancelled because it needs one of these; add --with-children to submit it "
        "and all tasks that need it, too" in tried.err
    )
    alone = tidewheel("resubmit", "child")
    assert alone.status == 2
    assert "child refused: it needs the output succeeded of bad, which is failed" in alone.out
    made = tidewheel("resubmit", "--tag", "t")
    assert "child submitted again as child~2-" in made.out
    assert ", needs bad~2-" in made.out
    again = tidewheel("resubmit", "--tag", "t")
    assert "bad was already submitted again as bad~2-" in again.out
    assert "0 tasks submitted again" in again.err
    assert "give either task ids or a filter" in tidewheel("resubmit").err


def test_queues_of_runs_with_nothing_open_are_hidden_and_idle_ones_stay(tidewheel):
    worked(tidewheel, "--queue", "default", "--", "true")
    tidewheel("queues", "run:left/run1", "--lease", "30s")
    listed = tidewheel("queues")
    assert "default" in listed.out and "run:left" not in listed.out
    assert "not listed: 1 queue of a run without open tasks; list all: --all" in listed.err
    assert "run:left/run1" in tidewheel("queues", "--all").out
