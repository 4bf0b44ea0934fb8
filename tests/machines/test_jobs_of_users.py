"""S25: `worker --run-as` starts each job as the user that a map names, all of them real."""

import json
import os
import pwd
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.afar import afar
from tests.support.fleet import is_gone
from tests.support.other_users import as_root, open_folder, reachable
from tests.support.patience import eventually
from tidewheel.runners import launcher as launcher_module
from tidewheel.runners.processes import read_row, read_table

pytestmark = [as_root, pytest.mark.req("S25")]
USERS = WORKER, A, B = [f"tw{os.getpid()}-{role}" for role in ("worker", "a", "b")]
LAUNCHER = Path(launcher_module.__file__)
OVER = ("succeeded", "failed", "cancelled")


@pytest.fixture(scope="module")
def users():
    """A worker's user and two tenants', each with a group of its own."""
    for name in USERS:
        subprocess.run(["useradd", "--system", "--user-group", name], check=True)
    try:
        yield {name: uid_of(name) for name in USERS}
    finally:
        for name in USERS:
            subprocess.run(["userdel", name], check=True)


def uid_of(name):
    return pwd.getpwnam(name).pw_uid


def gid_of(name):
    return pwd.getpwnam(name).pw_gid


@pytest.fixture
def far(users):
    assert users
    with open_folder() as folder, afar(folder, None) as made:
        yield made


@pytest.fixture
def client(far):
    with far.client() as client:
        yield client


@pytest.fixture
def home(far, users):
    folder = far.folder / "own"
    folder.mkdir()
    os.chown(folder, users[WORKER], users[WORKER])
    yield folder
    for name in (A, B):  # a job that fights is ended even by a test that fails
        kill_all = ["sh", "-c", "kill -9 -1"]
        words = ["setpriv", f"--reuid={users[name]}", "--clear-groups", *kill_all]
        subprocess.run(words, check=False)


MAP = f"""\
worker = "{WORKER}"
[jobs]
"team-a*" = "{A}"
"team-b*" = "{B}"
"""
QUEUES = ("--queue", "team-a", "--queue", "team-b", "--queue", "nobody", "--queue", "run:*")


# What the unit of systemd leaves to root (deploy/systemd/run-as.conf).
CAPABILITIES = "-all,+setuid,+setgid,+chown,+kill"


def started(far, home, *options, text=MAP, prefix=("setpriv", "--bounding-set", CAPABILITIES)):
    path = far.folder / "map.toml"
    path.write_text(text)
    given = {
        "TIDEWHEEL_STORE": "",
        "TIDEWHEEL_SERVER": far.url,
        "TIDEWHEEL_TOKEN": far.token,
        "TIDEWHEEL_HOME": str(home),
    }
    words = ("worker", "--run-as", str(path), *QUEUES, *options)
    return far.start(*words, prefix=[*reachable(), *prefix], **given)


def ended(client, task_id):
    eventually(lambda: client.get(task_id).status.value in OVER, f"{task_id} has ended")
    return client.get(task_id)


def printed(home, client, task_id, name="job.out"):
    ended(client, task_id)
    [log] = home.glob(f"tasks/*/{client.get(task_id).seq}/1/{name}")
    return log.read_text()


def test_a_job_is_of_the_user_of_its_queue_and_has_no_right_of_its_worker(
    far, client, home, users
):
    worker = started(far, home)
    tells = "id -un; id -G; grep NoNewPrivs /proc/self/status; echo $USER >> /dev/stdout"
    client.submit(command=tells, queue="team-a", id="a")
    values = "id -un; echo '{\"n\": 1}' > $TIDEWHEEL_OUTPUTS"
    client.submit(command=values, queue="team-b", id="b")
    groups = subprocess.check_output(["id", "-G", A], text=True).strip()
    said = printed(home, client, "a").splitlines()
    assert said == [A, groups, "NoNewPrivs:\t1", A]
    assert printed(home, client, "b") == f"{B}\n"
    assert client.get("b").status.value == "succeeded"
    [uids] = re.findall("Uid:(.*)", Path(f"/proc/{worker.pid}/status").read_text())
    assert set(uids.split()) == {str(users[WORKER])}  # it is no longer root itself


def test_no_tenant_reads_or_writes_what_is_another_s(far, client, home):
    started(far, home)
    client.submit(
        command="echo secret-of-a; sleep 600", queue="team-a", id="a", spec={"key": 1}
    )
    eventually(lambda: client.get("a").status.value == "running", "it runs")
    where = home / f"tasks/*/{client.get('a').seq}/1"
    eventually(lambda: list(home.glob(f"tasks/*/{client.get('a').seq}/1/job.status")), "began")
    [folder] = home.glob(f"tasks/*/{client.get('a').seq}/1")
    tries = "; ".join(
        [
            f"cat {folder}/job {folder}/job.out {folder}/spec.json",
            f"ls {folder}",
            f"touch {folder}/x",
            f"ls {home} {home}/tasks",
            f"cat {home}/home.id",
            f"echo x >> {home}/bin/tidewheel",
            f"echo x > {home}/bin/new",
            f"rm {home}/sock/*",
            "cat /proc/$PPID/environ > /dev/null",
            f"kill $(sed -n 's/pid=\\([0-9]*\\).*/\\1/p' {folder}/job.status)",
        ]
    )
    client.submit(command=f"{{ {tries}; }} 2>&1", queue="team-b", id="b")
    said = printed(home, client, "b").splitlines()
    denied = [line for line in said if "ermission denied" in line]
    assert len(denied) >= 10 and "secret-of-a" not in "".join(said), (where, said)
    assert client.get("a").status.value == "running"


def test_a_name_without_a_user_is_refused_and_says_so(far, client, home):
    started(far, home)
    client.submit(command="true", queue="nobody", id="n")
    assert ended(client, "n").status.value == "failed"
    assert "no user is mapped to 'nobody'" in client.attempts("n")[-1].error.description


def test_a_job_of_another_user_is_stopped_with_all_that_it_started(far, client, home):
    started(far, home)
    pids = far.folder / "pids"
    pids.touch()
    pids.chmod(0o666)
    daemon = f"setsid sh -c {shlex.quote(f'echo $$ >> {pids}; exec sleep 600')} &"
    command = f"trap '' TERM; {daemon} echo $$ >> {pids}; sleep 600 & wait; sleep 600"
    client.submit(command=command, queue="team-a", id="a", max_termination=0.2)
    eventually(lambda: len(pids.read_text().split()) == 2, "both run")
    client.cancel("a")
    assert ended(client, "a").status.value == "cancelled"
    for pid in pids.read_text().split():
        eventually(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), f"{pid} is gone")


# Leaves the session, the group and the environment of its job and its parents; then it kills
# whatever of its user appears, as the process would that is to end it.
FIGHTER = """
import os, sys
os.fork() and os._exit(0)
os.setsid()
os.fork() and os._exit(0)
if len(sys.argv) == 2:
    os.execve(sys.executable, [sys.executable, __file__, sys.argv[1], "again"], {})
def mine():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == os.getuid():
                yield int(pid)
        except OSError:
            pass
known = set(mine()) | {os.getpid()}
told = open(sys.argv[1], "w")
print("begun", file=told, flush=True)
while True:
    for pid in set(mine()) - known:
        try:
            os.kill(pid, 9)
        except OSError:
            pass
"""
# Is another process every time somebody looks.
COMET = """
import os, sys
told = open(sys.argv[1], "w")
print("begun", file=told, flush=True)
while True:
    os.fork() and os._exit(0)
    os.setsid()
"""


class Hostile:
    """A command of such a program, which holds a pipe open as long as anything of it lives."""

    def __init__(self, folder, text):
        program, pipe = folder / "hostile.py", folder / "pipe"
        program.write_text(text)
        os.mkfifo(pipe)
        pipe.chmod(0o666)
        self._pipe = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        here = shlex.join([sys.executable, str(program), str(pipe)])
        self.command = f"trap '' TERM; {here} & sleep 600 & wait; sleep 600"

    def _read(self):
        try:
            return os.read(self._pipe, 100)
        except BlockingIOError:  # it holds the pipe, and says nothing
            return None

    def begins(self):
        eventually(self._read, "it has begun")

    def is_gone(self):
        eventually(lambda: self._read() == b"", "nothing of it is left", 20)
        os.close(self._pipe)


def alive_of(uid):
    """The processes of a user, whoever started them."""
    rows = [
        Path(f"/proc/{row.pid}/status") for row in read_table().rows.values() if not row.ended
    ]
    texts = [path.read_text() for path in rows if path.exists()]
    return [text for text in texts if f"Uid:\t{uid}\t" in text]


@pytest.mark.parametrize("program", [FIGHTER, COMET], ids=["a fighter", "a comet"])
def test_no_job_outlives_a_cancel_however_it_hides_and_fights(far, client, home, program):
    started(far, home)
    client.submit(command="sleep 600", queue="team-b", id="b")
    hostile = Hostile(far.folder, program)
    client.submit(command=hostile.command, queue="team-a", id="a", max_termination=0.2)
    hostile.begins()
    client.cancel("a")
    assert ended(client, "a").status.value == "cancelled"
    hostile.is_gone()
    assert client.get("b").status.value == "running"


def test_a_time_limit_ends_a_job_that_fights(far, client, home):
    started(far, home)
    hostile, limits = Hostile(far.folder, FIGHTER), {"timeout": 2, "max_termination": 0.2}
    client.submit(command=hostile.command, queue="team-a", id="a", **limits)
    hostile.begins()
    assert ended(client, "a").status.value == "failed"
    hostile.is_gone()


def test_another_job_of_the_same_user_goes_on_when_one_is_ended(far, client, home):
    """Also where all of that user's processes had to be stopped for a moment."""
    started(far, home)
    gate = far.folder / "gate"
    command = f"until [ -e {gate} ]; do sleep 0.05; done"
    client.submit(command=command, queue="team-a", id="good")
    eventually(lambda: client.get("good").status.value == "running", "it runs")
    hostile = Hostile(far.folder, COMET)
    client.submit(command=hostile.command, queue="team-a", id="bad", max_termination=0.2)
    hostile.begins()
    client.cancel("bad")
    assert ended(client, "bad").status.value == "cancelled"
    hostile.is_gone()
    gate.touch()
    assert ended(client, "good").status.value == "succeeded"


def test_a_job_that_lies_about_its_process_is_adopted_and_ended_all_the_same(
    far, client, home, users
):
    client.configure_queue("team-a", lease_seconds=600.0)
    first = started(far, home, "--leave")
    told = far.folder / "told"
    told.touch()
    told.chmod(0o666)
    client.submit(command="sleep 600", queue="team-a", id="other")
    command = f"rm -f job.status; mkdir job.status; echo yes > {told}; sleep 600"
    client.submit(command=command, queue="team-a", id="a", max_termination=0.2)
    eventually(told.read_text, "it has lied")
    first.kill()
    second = started(far, home)
    eventually(lambda: second.log.count("lease.adopted") == 2, "both are adopted")
    client.cancel("a")
    assert ended(client, "a").status.value == "cancelled"
    [left] = [text for text in alive_of(users[A]) if "Name:\tsleep" in text]
    assert client.get("other").status.value == "running", left


# Holds as many connections to its worker as it gets, and says nothing.
HOLDER = """
import os, socket, sys, time
told = open(sys.argv[1], "w")
held = []
while True:
    for _ in range(300 - len(held)):
        one = socket.socket(socket.AF_UNIX)
        one.setblocking(False)
        try:
            one.connect(os.environ["TIDEWHEEL_SOCKET"])
            held.append(one)
        except OSError:
            break
    print("begun", file=told, flush=True)
    gone = []
    for one in held:
        try:
            one.recv(1000) or gone.append(one)
        except OSError:
            pass
    held = [one for one in held if one not in gone]
"""


def test_no_user_s_jobs_keep_those_of_others_from_being_heard(far, client, home):
    started(far, home)
    hostile = Hostile(far.folder, HOLDER)
    client.submit(command=hostile.command, queue="team-a", id="a")
    hostile.begins()
    client.submit(command="tidewheel message hello; sleep 600", queue="team-b", id="b")
    eventually(lambda: [one.text for one in client.outputs("b")] == ["hello"], "it speaks", 15)


def test_jobs_of_other_users_are_adopted_by_the_next_worker_and_heard(far, client, home):
    client.configure_queue("team-a", lease_seconds=600.0)
    first = started(far, home, "--leave")
    gate = far.folder / "gate"
    command = f"until [ -e {gate} ]; do sleep 0.05; done; tidewheel message hello; exit 3"
    client.submit(command=command, queue="team-a", id="a")
    eventually(lambda: list(home.glob("tasks/*/*/1/job.status")), "it runs")
    first.kill()
    second = started(far, home)
    second.says("adopted")
    gate.touch()
    assert ended(client, "a").status.value == "failed"
    assert client.attempts("a")[-1].exit_status == 3
    assert [one.text for one in client.outputs("a")] == ["hello"]


def test_a_worker_that_lost_its_launcher_ends_and_the_next_one_takes_over_its_jobs(
    far, client, home
):
    client.configure_queue("team-a", lease_seconds=600.0)
    first = started(far, home)
    gate = far.folder / "gate"
    command = f"until [ -e {gate} ]; do sleep 0.05; done; exit 3"
    client.submit(command=command, queue="team-a", id="a")
    eventually(lambda: list(home.glob("tasks/*/*/1/job.status")), "it runs")
    [launcher] = [
        row.pid
        for row in read_table().rows.values()
        if row.parent == first.pid and str(LAUNCHER) in command_line(row.pid)
    ]
    os.kill(launcher, signal.SIGKILL)
    client.submit(command="true", queue="team-a", id="b")
    eventually(lambda: not first.runs, "it ends by itself")
    assert first.process.returncode == 3
    assert "the launcher of --run-as does not answer" in first.log
    started(far, home).says("adopted")
    gate.touch()
    assert ended(client, "a").status.value == "failed"
    assert client.attempts("a")[-1].exit_status == 3
    assert ended(client, "b").status.value == "succeeded"


def command_line(pid):
    return Path(f"/proc/{pid}/cmdline").read_text()


def test_a_secret_reaches_the_job_of_another_user_and_its_file_does_not(
    far, client, home, users
):
    secrets = far.folder / "secrets"
    (secrets / "team-a").mkdir(parents=True)
    for name, value in (("team-a/db", "of-team-a-alone"), ("shared", "for-all-of-it")):
        (secrets / name).write_text(value)
        (secrets / name).chmod(0o600)
        os.chown(secrets / name, users[WORKER], users[WORKER])
    first = started(far, home, "--secrets", str(secrets))
    client.configure_queue("team-a", lease_seconds=600.0)
    gate = far.folder / "gate"
    tells = (
        f'cat {secrets}/team-a/db; echo "${{#S}} $S"; tidewheel message "it is $S"; '
        f"until [ -e {gate} ]; do sleep 0.05; done; "
        'tidewheel message "still $S"; echo "after $S" >> /dev/stdout'
    )
    given = {"S": "secret:team-a/db"}
    client.submit(command=tells, queue="team-a", id="a", environment=given)
    client.submit(command='echo "$S"', queue="team-b", id="b", environment=given)
    assert "this queue is team-b" in ended(client, "b").errors[0].description
    eventually(lambda: client.outputs("a"), "it speaks")
    first.kill()
    started(far, home, "--secrets", str(secrets)).says("adopted")
    gate.touch()
    assert printed(home, client, "a") == f"{len('of-team-a-alone')} ***\nafter ***\n"
    assert "ermission denied" in printed(home, client, "a", "job.err")
    assert [one.text for one in client.outputs("a")] == ["it is ***", "still ***"]
    written = (one.read_bytes() for one in home.rglob("*") if one.is_file())
    assert not any(b"of-team-a-alone" in one for one in written)


def test_a_fenced_job_of_another_user_dies_with_its_worker_and_its_daemons_do(
    far, client, home
):
    client.configure_queue("team-a", fence_kill=True, lease_seconds=600.0)
    worker = started(far, home)
    told = far.folder / "pid"
    told.touch()
    told.chmod(0o666)
    daemon = f"setsid env -i sh -c {shlex.quote(f'echo $$ >> {told}; exec sleep 600')} &"
    command = f"({daemon}) ; echo $$ >> {told}; sleep 600"
    client.submit(command=command, queue="team-a", id="a")
    eventually(lambda: len(told.read_text().split()) == 2, "both run")
    worker.kill()
    for pid in told.read_text().split():
        eventually(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), f"{pid} is gone")


FLOW = '''\
[scheduling]
    [[graph]]
        R1 = make => check
[runtime]
    [[make]]
        execution retry delays = PT0S
        script = """
            test $CYLC_TASK_TRY_NUMBER = 2 || exit 1
            id -un; hello; touch here; echo made > $CYLC_WORKFLOW_SHARE_DIR/file
        """
    [[check]]
        script = """
            cat $CYLC_WORKFLOW_SHARE_DIR/file $CYLC_WORKFLOW_RUN_DIR/bin/hello
            tidewheel message said
        """
'''


def test_a_run_has_one_user_whose_jobs_share_its_folders_and_nobody_else_does(
    far, client, home
):
    folder = far.folder / "team-a-flow"
    (folder / "bin").mkdir(parents=True)
    (folder / "flow.cylc").write_text(FLOW)
    (folder / "bin" / "hello").write_text("#!/bin/sh\necho from-bin\n")
    (folder / "bin" / "hello").chmod(0o755)
    far.start("scheduler")
    worker = started(far, home)
    token = far.new_token("admin")
    given = {"TIDEWHEEL_STORE": "", "TIDEWHEEL_TOKEN": token}
    run = far.start("run", str(folder), "--server", far.url, **given)
    assert run.process.wait(120) == 0, (run.log, worker.log)
    [place] = home.glob("runs/team-a-flow/run1")
    assert (place / "log/job/1/make/02/job.out").read_text().endswith(f"{A}\nfrom-bin\n")
    assert "made\n#!/bin/sh" in (place / "log/job/1/check/01/job.out").read_text()
    command = (
        f"ls {place}; cat {place}/share/file {place}/log/job/1/make/01/job.out; ls {home}/runs"
    )
    client.submit(command=f"{{ {command}; }} 2>&1", queue="team-b", id="b")
    said = printed(home, client, "b")
    assert said.count("ermission denied") == 4 and "made" not in said, said


CYCLES = '''\
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 3
    [[graph]]
        P1 = keep[-P1] => make => keep
[runtime]
    [[make]]
        script = """
            next=$CYLC_WORKFLOW_SHARE_DIR/cycle/$((CYLC_TASK_CYCLE_POINT + 1))
            mkdir -m 0700 $next
            echo from-$CYLC_TASK_CYCLE_POINT > $next/given
            echo mine > here
            test $CYLC_TASK_CYCLE_POINT = 1 || cat $CYLC_TASK_SHARE_CYCLE_DIR/given
        """
    [[keep]]
        script = """
            last=$((CYLC_TASK_CYCLE_POINT - 1))
            test $last = 0 || echo more >> $CYLC_WORKFLOW_WORK_DIR/$last/make/here
            rm -r $CYLC_WORKFLOW_SHARE_DIR/cycle/$CYLC_TASK_CYCLE_POINT
            test $last = 0 || rm -r $CYLC_WORKFLOW_WORK_DIR/$last
            touch $CYLC_WORKFLOW_SHARE_DIR/kept
        """
'''


def test_jobs_of_a_run_prepare_folders_for_later_cycles_and_clear_those_of_earlier_ones(
    far, client, home
):
    folder = far.folder / "team-a-cycles"
    folder.mkdir()
    (folder / "flow.cylc").write_text(CYCLES)
    far.start("scheduler")
    worker = started(far, home)
    given = {"TIDEWHEEL_STORE": "", "TIDEWHEEL_TOKEN": far.new_token("admin")}
    run = far.start("run", str(folder), "--server", far.url, **given)
    assert run.process.wait(120) == 0, (run.log, worker.log)
    place = home / "runs/team-a-cycles/run1"
    assert "from-2" in (place / "log/job/3/make/01/job.out").read_text()
    assert sorted(one.name for one in (place / "work").iterdir()) == ["3"]
    assert [one.name for one in (place / "work/3").iterdir()] == ["make"]  # the other was empty
    assert client.get("team-a-cycles/run1/3/make/1").status.value == "succeeded"


def test_a_job_cannot_lead_its_worker_to_what_is_another_s(far, client, home):
    """By a link where the folder of its next attempt, or of a later stage, will be."""
    started(far, home)
    client.submit(command="sleep 600", queue="team-b", id="victim")
    eventually(lambda: list(home.glob("tasks/*/*/1/job.status")), "the victim runs")
    [victim] = home.glob("tasks/*/*/1")
    begin = f"cd ..; ln -s {victim} 2; ls -l"
    client.submit(command=f"{begin}; exit 1", queue="team-a", id="a", retries=1)
    ended(client, "a")
    assert not (victim.parent.parent / str(client.get("a").seq) / "2").is_symlink()
    assert (victim / "job").read_text() == "sleep 600\n"
    before = sorted(one.name for one in victim.iterdir())
    files = "job.status job.messages job outputs.json"
    links = f"for f in {files}; do rm -f $f; ln -s {victim}/job $f; done"
    client.submit(command=f"{links}; tidewheel message x", queue="team-a", id="c")
    ended(client, "c")
    assert sorted(one.name for one in victim.iterdir()) == before
    assert (victim / "job").read_text() == "sleep 600\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MAP.replace(A, "root"), "not root"),
        (MAP.replace(A, WORKER), "differ from the worker's user"),
        (MAP.replace(A, "no-such-user"), "a user of this machine"),
        (f'worker = "{WORKER}"\n', "[jobs]"),
        ("nonsense", "a file with"),
    ],
    ids=["root", "the worker", "nobody", "no jobs", "no map"],
)
def test_a_map_that_would_not_keep_users_apart_is_refused(far, home, text, words):
    worker = started(far, home, text=text)
    assert worker.process.wait(60) == 2
    assert words in worker.log


def test_a_map_that_others_may_write_is_refused(far, home):
    path = far.folder / "map.toml"
    path.touch()
    path.chmod(0o666)
    worker = started(far, home)
    assert worker.process.wait(60) == 2
    assert "only root may write" in worker.log


@pytest.fixture
def launcher(users):
    """The launcher, asked by somebody who is not the worker that it was written for."""
    asking, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    rows = [["r", "root"], ["a", A]]
    told = json.dumps({"worker_uid": users[WORKER], "worker_gid": gid_of(WORKER), "jobs": rows})
    with theirs:
        words = (sys.executable, "-I", LAUNCHER, told)
        process = subprocess.Popen(words, stdin=theirs.fileno(), env={})
    asking.settimeout(60)

    def ask(request, *files):
        with tempfile.TemporaryFile() as text:
            text.write(request if isinstance(request, bytes) else json.dumps(request).encode())
            text.flush()
            socket.send_fds(asking, [b"?"], [text.fileno(), *(one.fileno() for one in files)])
            return json.loads(asking.recv(65_536))

    yield ask
    asking.close()
    assert process.wait(60) == 0


def test_the_launcher_starts_nothing_as_root_and_gives_nothing_of_root_away(launcher, tmp_path):
    """Whatever a worker asks that was taken over."""
    told = tmp_path / "told"
    words = ["-c", "id -u; cut -d' ' -f1 /proc/self/stat"]
    shell = {"words": words, "environment": {"LD_PRELOAD": "x", "HOME": "/root"}}
    with told.open("w+b") as out, (tmp_path / "root").open("wb") as of_root:
        of_root.flush()
        assert "refused" in launcher({"name": "a", **shell}, out, out, of_root)
        assert "refused" in launcher({"name": "c", **shell}, out, out)
        assert "refused" in launcher({"name": "a"}, out, out)
        assert "refused" in launcher(b"[]", out, out)
        assert "refused" in launcher(b"{", out, out)
        assert "refused" in launcher({"name": "a", **shell}, out)
        assert "has rights of root" in launcher({"name": "r", **shell}, out, out)["refused"]
        launcher({"name": "a", **shell}, out, out)
        eventually(lambda: f"{uid_of(A)}\n" in told.read_text(), "the other one began")
    assert "\n0\n" not in told.read_text() and not told.read_text().startswith("0\n")
    assert (tmp_path / "root").stat().st_gid == 0


def test_a_folder_that_was_one_user_s_is_given_to_no_other(launcher, tmp_path, users):
    """By a map that has changed: what the first one left in there is not the second one's."""
    request = {"name": "a", "words": ["-c", "true"], "environment": {}}
    with (tmp_path / "told").open("w+b") as out, (tmp_path / "given").open("wb") as given:
        os.chown(given.fileno(), users[WORKER], gid_of(WORKER))
        assert "pid" in launcher(request, out, out, given)
        assert "pid" in launcher(request, out, out, given)  # it is this user's by now
        os.chown(given.fileno(), users[WORKER], gid_of(B))
        assert "was another user's" in launcher(request, out, out, given)["refused"]
        assert os.fstat(given.fileno()).st_gid == gid_of(B)


def test_the_launcher_ends_nothing_but_what_is_of_the_user_that_it_is_asked_for(
    launcher, users
):
    """Whatever a worker asks that was taken over."""
    prefix = ["setpriv", f"--reuid={users[B]}", f"--regid={gid_of(B)}", "--clear-groups"]
    with subprocess.Popen([*prefix, "sleep", "600"]) as other:
        row = eventually(lambda: read_row(other.pid), "it runs")
        for name, number in (("a", 9), ("r", 9), ("a", 19)):
            answer = launcher({"name": name, "end": [other.pid, row.started, number]})
            if "pid" in answer:
                eventually(lambda pid=answer["pid"]: is_gone(pid), "it has looked")
        assert "refused" in launcher({"name": "a", "end": "all"})
        assert other.poll() is None and read_row(other.pid).state == "S"
        other.kill()


def test_the_launcher_is_small_and_needs_nothing_of_tidewheel():
    text = LAUNCHER.read_text()
    assert len(text.splitlines()) <= 330
    assert "import tidewheel" not in text and "from tidewheel" not in text


def test_only_root_can_start_such_a_worker(far, home, users):
    own = str(users[WORKER])
    prefix = ["setpriv", "--reuid", own, "--regid", own, "--clear-groups"]
    worker = started(far, home, prefix=prefix)
    assert worker.process.wait(60) == 2
    assert "a worker that root starts" in worker.log
