"""`tidewheel up`: everything on one machine, in one process (DESIGN §3)."""

import json
import os
import pty
import re
import signal
import stat
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.http_server import Caller
from tests.support.patience import eventually, eventually_told
from tests.support.ports import free_port
from tidewheel.server.static_page import BUILT

FLOW = """
[scheduling]
    [[graph]]
        R1 = first => second
[runtime]
    [[first]]
        script = read line < {gate}
    [[second]]
        script = true
"""
ALONE = """
schema_version: "2.0"
stages:
  - id: alone
    version: 1.0.0
    type: processing
    timeout: 60s
    resources_required:
      - {type: nodes, number: 1, exclusive: true}
"""
FORM = "application/x-www-form-urlencoded"
SOON = {"TIDEWHEEL_SCHEDULER_LEASE_SECONDS": "3", "TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS": "0.1"}


def welcome(command):
    """What it says once it answers."""
    return json.loads(command.read_until('"url"'))


def started(tidewheel, *arguments, **environment):
    return tidewheel.started("up", "--port", "0", "--json", *arguments, **environment)


def caller_of(tidewheel, said):
    token = (tidewheel.state / "token").read_text().strip()
    return Caller(urlsplit(said["url"]).netloc, token)


def is_succeeded(tidewheel, task_id):
    return tidewheel("task", task_id, "--json").json["task"]["status"] == "succeeded"


def test_a_newcomer_starts_it_and_is_told_how_to_begin(tidewheel):
    with tidewheel.started("up", "--port", "0") as up:
        assert re.search(r"http://127\.0\.0\.1:\d+", up.read_until("answering at"))
        assert "tidewheel token link prints a link" in up.read_until("browser:")
        assert str(tidewheel.state / "token") in up.read_until("token")
        assert "tidewheel submit" in up.read_until("begin:")
        told_to_build = any("make web" in line for line in up.lines)
        assert told_to_build is not (BUILT / "index.html").exists()


def test_its_two_workers_say_by_their_names_what_each_is_for(tidewheel):
    with started(tidewheel) as up:
        welcome(up)

        def named():
            workers = tidewheel("workers", "--json").json["workers"]
            return {one["name"].partition(" ")[2]: one["queues"] for one in workers}

        expected = {"tasks": ["default"], "runs": ["run:*"]}
        eventually_told(lambda: named() == expected, "both workers are registered")


def test_it_executes_what_is_submitted_to_the_store_and_to_the_server(tidewheel):
    with started(tidewheel) as up:
        caller = caller_of(tidewheel, welcome(up))
        assert tidewheel("submit", "--id", "one", "--", "true").status == 0
        assert caller.post("/tasks", {"id": "two", "command": "true"}).status == 201
        for task_id in ("one", "two"):
            eventually_told(lambda name=task_id: is_succeeded(tidewheel, name), task_id)
        up.send(signal.SIGTERM)
        assert up.wait().status == 0


def test_a_link_to_log_in_with_is_printed_on_a_terminal_and_into_no_log(tidewheel):
    """Security audit, LOW: an admin's link went into the journal and `docker logs`; S8."""
    with started(tidewheel) as up:  # into a pipe
        assert welcome(up)["login"] is None
        kinds = {view["kind"] for view in tidewheel("--json", "token", "list").json["tokens"]}
        assert kinds == {"bearer"}  # nor is one made that nobody sees
        up.send(signal.SIGTERM)
        assert up.wait().status == 0
    with on_terminal(tidewheel, "up", "--port", "0") as lines:
        [shown] = [line for line in lines if "browser:" in line]
        assert re.search(r"browser: http://127\.0\.0\.1:\d+/login\?code=tw_", shown)


@contextmanager
def on_terminal(tidewheel, *words):
    """What `up` shows on a terminal until it says how to begin; it goes on meanwhile."""
    ours, theirs = pty.openpty()
    command = [str(tidewheel.program), *words]
    process = subprocess.Popen(
        command,
        cwd=tidewheel.folder,
        env=tidewheel.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        shown = b""
        while b"begin:" not in shown and (some := os.read(ours, 4096)):
            shown += some
        yield shown.decode().splitlines()
    finally:
        process.terminate()
        with suppress(OSError):
            while os.read(ours, 4096):
                pass
        assert process.wait(60) == 0
        os.close(ours)


def test_a_link_logs_a_browser_in_once(tidewheel):
    """S8."""
    with started(tidewheel) as up:
        welcome(up)
        link = urlsplit(tidewheel("token", "link").word)
        code = parse_qs(link.query)["code"][0]
        browser = Caller(link.netloc)
        reply = browser.post("//login", f"code={code}".encode(), Content_Type=FORM)
        assert (reply.status, reply.headers["location"]) == (303, "/")
        browser.headers["Cookie"] = reply.headers["set-cookie"].partition(";")[0]
        # Where the page is not built, / leads on to the plain one.
        seen = 200 if (BUILT / "index.html").exists() else 307
        assert browser.get("//", Accept="text/html").status == seen
        again = Caller(link.netloc).post("//login", f"code={code}".encode(), Content_Type=FORM)
        assert again.status == 401


def test_a_further_link_is_made_for_whoever_has_its_token(tidewheel):
    """S8: without naming the server, which is found through the state directory."""
    with started(tidewheel) as up:
        url = welcome(up)["url"]
        link = tidewheel("token", "link", "--json").json["login"]
        assert link.startswith(f"{url}/login?code=")
        code = parse_qs(urlsplit(link).query)["code"][0]
        browser = Caller(urlsplit(link).netloc)
        reply = browser.post("//login", f"code={code}".encode(), Content_Type=FORM)
        assert reply.status == 303
        assert tidewheel("token", "link", "--server", url).out.startswith(url)


def test_sessions_are_listed_and_ended_at_the_command_line(tidewheel):
    with started(tidewheel) as up:
        url = welcome(up)["url"]

        def browser():
            link = urlsplit(tidewheel("token", "link", "--json").json["login"])
            body = f"code={parse_qs(link.query)['code'][0]}".encode()
            caller = Caller(link.netloc)
            reply = caller.post("//login", body, Content_Type=FORM)
            cookie = reply.headers["set-cookie"].partition(";")[0]
            return Caller(link.netloc, headers={"Cookie": cookie})

        people = [browser() for _ in range(3)]
        shown = tidewheel("session", "list", "--server", url, "--json").json["sessions"]
        assert [one["kind"] for one in shown] == ["session"] * 3
        assert tidewheel("session", "end", str(shown[-1]["number"])).status == 0
        eventually(lambda: people[0].get("/tasks").status == 401, "ended")
        assert people[1].get("/tasks").status == 200
        said = tidewheel("session", "end", "--all", "--server", url)
        assert "2 sessions ended" in said.err
        eventually(lambda: people[2].get("/tasks").status == 401, "ended")
        assert "no session is open" in tidewheel("session", "list").err
        assert tidewheel("session", "end").status == 2


def test_without_a_server_there_is_nothing_to_log_in_to(tidewheel):
    said = tidewheel("token", "link")
    assert said.status == 3 and "tidewheel up" in said.err


def test_clients_find_it_through_the_state_directory_while_it_lives(tidewheel):
    """S31: the file is its user's alone, and holds no password."""
    path = tidewheel.state / "server.json"
    with started(tidewheel) as up:
        said = welcome(up)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        found = json.loads(path.read_text())
        assert (found["url"], found["pid"]) == (said["url"], said["pid"])
        assert found["store"] == tidewheel.store
        up.send(signal.SIGINT)
        assert up.wait().status == 0
    assert not path.exists()


def test_a_second_one_leaves_the_address_of_the_first_where_it_is(tidewheel):
    path = tidewheel.state / "server.json"
    with started(tidewheel) as first:
        url = welcome(first)["url"]
        with started(tidewheel) as second:
            assert welcome(second)["url"] != url
            second.send(signal.SIGTERM)
            assert second.wait().status == 0
        assert json.loads(path.read_text())["url"] == url
        first.send(signal.SIGKILL)
        first.wait()
    with started(tidewheel) as third:
        assert welcome(third)["url"] == json.loads(path.read_text())["url"]


def test_on_postgresql_clients_ask_the_server_and_no_password_is_written_down(
    tidewheel, postgres_url
):
    """S23: whoever has the state directory has the server, not the database."""
    store = postgres_url + ("&" if "?" in postgres_url else "?") + "password=secret-word"
    with started(tidewheel, TIDEWHEEL_STORE=store) as up:
        said = up.read_until('"url"')
        assert tidewheel("submit", "--id", "far", "--", "true").status == 0
        eventually_told(lambda: is_succeeded(tidewheel, "far"), "the task's end")
        assert "secret-word" not in said
        assert "secret-word" not in (tidewheel.state / "server.json").read_text()
        up.send(signal.SIGTERM)
        assert "secret-word" not in up.wait().out
    assert not (tidewheel.state / "tidewheel.db").exists()


def test_a_port_that_is_taken_is_named_with_whoever_took_it(tidewheel):
    with started(tidewheel) as up:
        said = welcome(up)
        port = str(urlsplit(said["url"]).port)
        answer = tidewheel("up", "--port", port)
        assert answer.status == 2
        assert f"process {said['pid']} (" in answer.err and port in answer.err
        assert json.loads((tidewheel.state / "server.json").read_text())["pid"] == said["pid"]


def test_the_same_token_is_good_at_every_start(tidewheel):
    with started(tidewheel) as up:
        caller = caller_of(tidewheel, welcome(up))
        assert caller.get("/tokens").status == 200
    with started(tidewheel) as up:
        said = welcome(up)
        assert said["token_file"] == str(tidewheel.state / "token")
        assert caller_of(tidewheel, said).token == caller.token
        assert caller_of(tidewheel, said).get("/tokens").status == 200


def test_a_token_of_another_server_is_left_alone(tidewheel):
    tidewheel.state.mkdir(parents=True)
    file = tidewheel.state / "token"
    file.write_text("tw_1_" + "A" * 43 + "\n")
    with started(tidewheel) as up:
        said = welcome(up)
        own = Path(said["token_file"])
        assert own.parent == tidewheel.state and own.stat().st_mode & 0o777 == 0o600
    with started(tidewheel) as up:
        assert Path(welcome(up)["token_file"]) == own
    assert file.read_text() == "tw_1_" + "A" * 43 + "\n"


def test_commands_show_each_server_the_token_of_its_store(tidewheel):
    other = f"sqlite:///{tidewheel.folder}/other.db"
    with started(tidewheel, "--store", other) as up:
        usual = welcome(up)["token_file"]
        assert tidewheel("submit", "--", "true").status == 0
        up.send(signal.SIGTERM)
        up.wait()
    third = f"sqlite:///{tidewheel.folder}/third.db"
    with started(tidewheel, "--store", third) as up:
        assert welcome(up)["token_file"] != usual
        assert tidewheel("submit", "--id", "here", "--", "true").status == 0
        up.send(signal.SIGTERM)
        up.wait()
    assert tidewheel("task", "here", "--store", third).status == 0
    with started(tidewheel, "--store", other) as up:
        assert welcome(up)["token_file"] == usual
        assert tidewheel("tasks").status == 0


def gated_job(folder):
    """The gate and the marks of a job that waits between its begin and its end; its command."""
    gate, marks = folder / "gate", folder / "marks"
    os.mkfifo(gate)
    return gate, marks, f"echo begun >> {marks}; read line < {gate}; echo ended >> {marks}"


def test_killed_and_started_again_it_goes_on_with_its_jobs(tidewheel):
    """R002-34 in large: nothing is done twice, nothing is lost."""
    gate, marks, command = gated_job(tidewheel.folder)
    with started(tidewheel) as up:
        welcome(up)
        tidewheel("submit", "--id", "long", "--", "bash", "-c", command)
        eventually(marks.exists, "the job runs")
        up.send(signal.SIGKILL)
        up.wait()
    assert (tidewheel.state / "server.json").exists()
    with tidewheel.started("up", "--port", "0") as up:
        up.read_until("lease.adopted")
        gate.write_text("go\n")
        eventually_told(lambda: is_succeeded(tidewheel, "long"), "the job's end")
        # Not how long this process has followed it, as if that were all.
        ended = up.read_until("job.ended")
        assert ended.endswith("long  attempt 1 succeeded; it began under another worker\n")
    assert marks.read_text() == "begun\nended\n"


def test_a_worker_is_not_idle_because_its_server_is_away(tidewheel):
    gate, marks, command = gated_job(tidewheel.folder)
    serve = ("server", "--port", str(free_port()))
    url = f"http://127.0.0.1:{serve[-1]}"
    work = ("worker", "--server", url, "--queue", "q", "--slots", "1", "--exit-when-idle")
    tidewheel("submit", "--queue", "q", "--id", "first", "--", "bash", "-c", command)
    tidewheel("submit", "--queue", "q", "--id", "second", "--", "true")
    with tidewheel.started(*serve) as server:
        server.read_until("answering at")
        with tidewheel.started(*work) as worker:
            eventually(marks.exists, "the job runs")
            server.send(signal.SIGKILL)
            server.wait()
            worker.read_until("store.unavailable")
            with tidewheel.started(*serve) as again:
                again.read_until("answering at")
                opened = os.open(gate, os.O_RDWR)  # also if nobody reads any more
                os.write(opened, b"go\n")
                assert worker.wait().status == 0
                os.close(opened)
    assert marks.read_text() == "begun\nended\n"
    assert is_succeeded(tidewheel, "first") and is_succeeded(tidewheel, "second")


def test_stopped_it_leaves_jobs_running_and_the_next_start_adopts_them(tidewheel):
    gate, marks, command = gated_job(tidewheel.folder)
    with started(tidewheel) as up:
        welcome(up)
        tidewheel("submit", "--id", "long", "--", "bash", "-c", command)
        eventually(marks.exists, "the job runs")
        up.send(signal.SIGTERM)
        stopped = up.wait()
        assert (stopped.status, '"jobs": 1, "leaves": true' in stopped.out) == (0, True)
    with started(tidewheel) as up:
        welcome(up)
        up.read_until("lease.adopted")
        gate.write_text("go\n")
        eventually_told(lambda: is_succeeded(tidewheel, "long"), "the job's end")
    assert marks.read_text() == "begun\nended\n"


def test_a_second_signal_ends_it_at_once(tidewheel):
    with started(tidewheel, "--on-stop", "drain", "--grace", "1h") as up:
        welcome(up)
        tidewheel("submit", "--id", "endless", "--", "bash", "-c", "sleep 1000")
        up.read_until("job.started")
        up.send(signal.SIGTERM)
        up.send(signal.SIGINT)  # two of the same kind may come as one
        assert up.wait().status == 0


def test_a_run_whose_process_was_killed_is_driven_to_its_end(tidewheel):
    """It takes every run that nobody drives, with its jobs."""
    gate, folder = tidewheel.folder / "gate", tidewheel.folder / "flow"
    os.mkfifo(gate)
    folder.mkdir()
    (folder / "flow.cylc").write_text(FLOW.format(gate=gate))
    with tidewheel.started("run", "flow", **SOON) as run:
        run.read_until("first started")
        run.send(signal.SIGKILL)
        run.wait()
    with started(tidewheel, **SOON) as up:
        welcome(up)
        up.read_until("run.taken")
        gate.write_text("go\n")
        up.read_until("run.left")
    [shown] = tidewheel("runs", "--json").json["runs"]
    assert shown["status"] == "completed"


@pytest.mark.parametrize("without", ["--no-worker", "--no-scheduler", "--no-monitor"])
def test_each_role_can_be_left_out(tidewheel, without):
    with started(tidewheel, without) as up:
        caller = caller_of(tidewheel, welcome(up))
        assert caller.get("//readyz").status == 200
        up.send(signal.SIGTERM)
        assert up.wait().status == 0


def gated(tidewheel, name):
    """A command that says when it begins and ends, and goes on until `gate` is written to."""
    gate, marks = tidewheel.folder / "gate", tidewheel.folder / "marks"
    os.mkfifo(gate)
    return f"echo begin {name} >> {marks}; read line < {gate}; echo end {name} >> {marks}"


@pytest.mark.req("R004-20", "R004-21")
@pytest.mark.parametrize("alone_is", ["a stage", "a task"])
def test_nothing_of_queues_or_runs_starts_beside_what_has_the_machine_alone(
    tidewheel, alone_is
):
    folder, marks = tidewheel.folder, tidewheel.folder / "marks"
    of_run = "other/run1/1/alone/1"
    with started(tidewheel) as up:
        url = welcome(up)["url"]
        up.read_on()
        waits = gated(tidewheel, "alone")
        first = waits if alone_is == "a stage" else f"echo other >> {marks}"
        stage = folder / "stages" / "alone" / "1.0.0"
        stage.mkdir(parents=True)
        (stage / "script.sh").write_text(f"{first}\n")
        text = ALONE if alone_is == "a stage" else ALONE.replace("true}", "false}")
        (folder / "other-1.0.0.yaml").write_text(text)

        def run():
            assert tidewheel("run", "other-1.0.0.yaml", "--server", url, "--detach").status == 0

        def submit(command, *options):
            tidewheel("submit", "--id", "one", *options, "--", "bash", "-c", command)

        if alone_is == "a stage":
            run()
            eventually(marks.exists, "the stage runs")
            submit(f"echo other >> {marks}")
            waiting, holder = "one", of_run
        else:
            submit(waits, "--exclusive")
            eventually(marks.exists, "the task runs")
            run()
            waiting, holder = of_run, "one"

        def why():
            shown = tidewheel("task", waiting, "--json")  # not found until it is submitted
            return shown.json.get("why") if shown.status == 0 else None

        eventually_told(why, "the other one waits")
        assert why()[0].startswith(f"Task {holder} uses nodes of worker-")
        (folder / "gate").write_text("go\n")
        eventually(lambda: marks.read_text().endswith("other\n"), "the other one runs")
    assert marks.read_text() == "begin alone\nend alone\nother\n"
