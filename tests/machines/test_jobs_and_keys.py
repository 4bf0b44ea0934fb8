"""H3: no job can read a key of its worker, its server or its scheduler, wherever it looks."""

import json
import os
import pwd
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from tests.support.afar import afar
from tests.support.other_users import as_root, become, open_folder, reachable
from tests.support.patience import eventually
from tidewheel.client import Client
from tidewheel.credentials import credentials
from tidewheel.errors import BadSetting

USER = 64_002
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
OVER = ("succeeded", "failed")
PASSWORD = "s3cr3t-db-password"

# Looks into every process that it may look into, and says where it saw these texts.
SPY = dedent("""
    import ctypes, json, os, sys
    wanted = [text.encode() for text in sys.argv[1:]]
    seen, closed = [], []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid() or int(pid) == os.getppid():
            continue
        for name in ("environ", "cmdline"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    text = file.read()
            except PermissionError:
                closed.append([int(pid), name])
                continue
            except OSError:
                continue
            seen += [[int(pid), name] for one in wanted if one in text]
        try:
            os.listdir(f"/proc/{pid}/fd"), open(f"/proc/{pid}/mem", "rb").close()
            opened = True
        except PermissionError:
            opened = False
        except OSError:
            continue
        if not opened:
            closed.append([int(pid), "memory"])
            if ctypes.CDLL(None).ptrace(16, int(pid), 0, 0) != 0:
                closed.append([int(pid), "trace"])
    own = b"\\0".join(os.environb[one] for one in os.environb)
    seen += [["own", "environ"] for one in wanted if one in own]
    for folder, _, names in os.walk(os.environ["SPIED"]):
        for name in names:
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    text = file.read()
            except OSError:
                continue
            seen += [["file", os.path.join(folder, name)] for one in wanted if one in text]
    print(json.dumps({"uid": os.getuid(), "seen": seen, "closed": closed}))
""")


# The listing itself opens a file, which is gone when it is asked for.
LISTING = """
import json, os
numbers = os.listdir("/proc/self/fd")
there = [one for one in numbers if os.path.exists(f"/proc/self/fd/{one}")]
print(json.dumps({one: os.readlink(f"/proc/self/fd/{one}") for one in there}))
"""


@pytest.fixture
def far():
    with open_folder() as folder, afar(folder, None) as made:
        (folder / "spy.py").write_text(SPY)
        yield made


@pytest.fixture
def client(far):
    with far.client() as client:
        yield client


def spying(far, *texts):
    """A command that looks for these texts. It has them reversed: it must not find itself."""
    reverse = "import sys; sys.argv[1:] = [text[::-1] for text in sys.argv[1:]]; "
    words = [f"{reverse}exec(open('{far.folder}/spy.py').read())", *(t[::-1] for t in texts)]
    return f"SPIED={far.folder / 'own'} exec {sys.executable} -c {shlex.join(words)}"


def spied(home, client, task_id):
    """What the spy has found."""
    eventually(lambda: client.get(task_id).status.value in OVER, f"{task_id} has ended")
    [log] = home.glob("tasks/*/*/1/job.out")
    return json.loads(log.read_text())


def own_home(far, user):
    home = far.folder / "own"
    home.mkdir()
    os.chown(home, user, user)
    return home


def told(far, home, **more):
    return {
        "TIDEWHEEL_STORE": "",
        "TIDEWHEEL_SERVER": far.url,
        "TIDEWHEEL_TOKEN": far.token,
        "TIDEWHEEL_HOME": str(home),
        "HOME": str(home),
    } | more


def closed_of(found, program):
    """What the spy could not open of this program: its processes begin with a prefix."""
    return {name for pid, name in found["closed"] if pid == program.pid}


@as_root
def test_h3_a_job_cannot_read_the_token_that_its_worker_was_given_in_a_variable(far, client):
    home = own_home(far, USER)
    worker = far.start("worker", prefix=become(USER), **told(far, home))
    client.submit(command=spying(far, far.token), id="spy")
    found = spied(home, client, "spy")
    assert found["uid"] == USER and found["seen"] == []
    assert closed_of(found, worker) == {"environ", "memory", "trace"}


@pytest.fixture
def token_file(far):
    """With the worker's token, for root alone."""
    file = far.folder / "worker.token"
    file.write_text(far.token)
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")  # it is removed when its processes have ended
def user():
    """A user with a name, as units of systemd and compose have."""
    name = f"tw{os.getpid()}-own"
    subprocess.run(["useradd", "--system", "--user-group", name], check=True)
    try:
        yield pwd.getpwnam(name)
    finally:
        subprocess.run(["userdel", name], check=True)


@as_root
def test_h3_a_worker_that_systemd_starts_keeps_its_token_from_its_jobs(
    far, client, token_file, user
):
    """Without systemd, which is not at work here: root starts it, with the unit's rights."""
    unit = (DEPLOY / "systemd/tidewheel-worker@.service").read_text()
    [line] = re.findall(r"ExecStart=!\S+ (.*) \$WORKER_OPTIONS", unit)
    [rights] = re.findall(r"CapabilityBoundingSet=(.*)", unit)
    kept = [f"+{one.removeprefix('CAP_').lower()}" for one in rights.split()]
    words = line.replace("--user tidewheel-worker", f"--user {user.pw_name}")
    words = words.replace("/etc/tidewheel/worker.token", str(token_file))
    assert words.count(user.pw_name) == 1 and words.count(str(token_file)) == 1
    found = spied_by_job(far, client, user, shlex.split(words), kept)
    assert found["uid"] == user.pw_uid and found["seen"] == []


@as_root
def test_h3_a_worker_that_compose_starts_keeps_its_token_from_its_jobs(
    far, client, token_file, user
):
    """Its own words, with the capabilities that its container would have."""
    compose = yaml.safe_load((DEPLOY / "compose/compose.yml").read_text())
    service = compose["services"]["worker-1"]
    assert service["cap_drop"] == ["ALL"] and service["user"] == "root"
    own = {"tidewheel-worker": user.pw_name, "/run/secrets/worker-token": str(token_file)}
    words = [own.get(word, word) for word in service["command"]]
    assert words.count(user.pw_name) == 1 and words.count(str(token_file)) == 1
    os.chown(token_file, USER + 1, USER + 1)  # whoever typed `docker compose run` made it
    kept = [f"+{name.lower()}" for name in service["cap_add"]]
    found = spied_by_job(far, client, user, words, kept)
    assert found["uid"] == user.pw_uid and found["seen"] == []


def spied_by_job(far, client, user, words, kept):
    """What a spy finds as a job of a worker that root started so, with these capabilities."""
    home = far.folder / "own"
    home.mkdir()
    os.chown(home, user.pw_uid, user.pw_gid)
    prefix = ["setpriv", "--bounding-set", ",".join(["-all", *kept]), "--no-new-privs"]
    given = told(far, home, TIDEWHEEL_TOKEN="")
    worker = far.start(*words, prefix=[*reachable(), *prefix], **given)
    client.submit(command=spying(far, far.token), id="spy")
    found = spied(home, client, "spy")
    assert closed_of(found, worker) == {"environ", "memory", "trace"}
    return found


# Tries to open the memory of every process, again and again, and tells which it could.
WAITER = """
import os, sys
kept = {}
told = open(sys.argv[1], "a", buffering=1)
while True:
    for pid in os.listdir("/proc"):
        if pid.isdigit() and pid not in kept:
            try:
                kept[pid] = open(f"/proc/{pid}/mem", "rb")
                print(pid, file=told)
            except OSError:
                pass
"""


@as_root
def test_h3_nobody_who_waits_for_a_worker_that_root_starts_can_open_its_memory(
    far, client, token_file, user
):
    """Such as a job of the worker before it. One that the user starts is open for a moment."""
    home, seen = far.folder / "own", far.folder / "seen"
    home.mkdir()
    seen.touch()
    for one in (home, seen):
        os.chown(one, user.pw_uid, user.pw_gid)
    as_user = become(user.pw_uid, group=user.pw_gid)
    (far.folder / "waiter.py").write_text(WAITER)
    words = [*as_user, sys.executable, str(far.folder / "waiter.py"), str(seen)]
    with subprocess.Popen(words) as waiter:
        given = told(far, home, TIDEWHEEL_TOKEN="")
        try:
            eventually(seen.read_text, "it waits")  # and has found itself
            plain = far.start(
                "worker", prefix=as_user, **given | {"TIDEWHEEL_TOKEN": far.token}
            )
            eventually(lambda: str(plain.pid) in seen.read_text().split(), "it works")
            plain.kill()
            own = ("--user", user.pw_name, "--token-file", str(token_file))
            worker = far.start("worker", *own, prefix=[*reachable(), "env"], **given)
            client.submit(command="true", id="done")
            eventually(lambda: client.get("done").status.value in OVER, "it has worked")
            assert str(worker.pid) not in seen.read_text().split()
        finally:
            waiter.kill()


@as_root
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--user", "root"), "not root"),
        (("--user", "no-such-user"), "a user of this machine"),
        (("--user", "nobody", "--run-as", __file__), "cannot be combined with --run-as"),
    ],
    ids=["root", "nobody", "with a map"],
)
def test_a_worker_becomes_no_user_that_would_not_help(far, words, says):
    worker = far.start("worker", *words, prefix=[*reachable(), "env"])
    assert worker.process.wait(60) == 2 and says in worker.log


@as_root
def test_h3_even_where_jobs_are_root_no_process_shows_what_it_was_given(far, client):
    home = own_home(far, 0)
    far.start("worker", prefix=["env"], **told(far, home))
    client.submit(command=spying(far, far.token), id="spy")
    assert spied(home, client, "spy")["seen"] == []


@as_root
def test_h3_the_guard_of_fenced_jobs_knows_nothing_either(far, client):
    """It is a process between worker and job, and may be looked into."""
    home = own_home(far, USER)
    client.configure_queue("default", fence_kill=True)
    far.start("worker", prefix=become(USER), **told(far, home, PGPASSWORD=PASSWORD))
    client.submit(command=spying(far, far.token, PASSWORD), id="spy")
    assert spied(home, client, "spy")["seen"] == []


@as_root
def test_h3_a_job_has_no_open_file_of_its_worker(far, client):
    """Neither one that the worker itself was started with."""
    home, file = own_home(far, USER), far.folder / "secret"
    file.write_text("secret")
    prefix = ["sh", "-c", f'exec "$@" 7< {file}', "sh", *become(USER)]
    far.start("worker", prefix=prefix, **told(far, home))
    client.submit(command=f"exec {sys.executable} -c {shlex.quote(LISTING)}", id="files")
    eventually(lambda: client.get("files").status.value in OVER, "it has ended")
    [log] = home.glob("tasks/*/*/1/job.out")
    assert json.loads(log.read_text()) == {
        "0": "/dev/null",
        "1": str(log),
        "2": str(log.with_name("job.err")),
    }


@as_root
def test_h3_no_role_shows_the_password_of_its_database(far, postgres_server):
    """In its environment or, which everybody may read, on its command line."""
    plain = postgres_server.create_database("keys")
    where = plain.replace("@", f":{PASSWORD}@", 1)
    [folder] = parse_qs(urlsplit(plain).query)["host"]
    Path(folder).chmod(0o755)  # for another user: the socket in it
    home = own_home(far, USER)
    given = {"TIDEWHEEL_TOKEN": "", "TIDEWHEEL_HOME": str(home), "HOME": str(home)}
    for role in ("scheduler", "monitor", "worker"):
        far.start(role, prefix=become(USER), **given, TIDEWHEEL_STORE=where)
    words = ("server", "--port", "0", "--store", where)
    server = far.start(*words, prefix=become(USER), **given, TIDEWHEEL_STORE="")
    server.says("answering at")
    with Client(plain) as client:
        client.submit(command=spying(far, PASSWORD), id="spy")
        assert spied(home, client, "spy")["seen"] == []


def test_a_token_comes_from_the_variable_then_a_named_file_then_systemd(tmp_path):
    (tmp_path / "tidewheel.token").write_text("of-systemd\n")
    (tmp_path / "file").write_text("of-file\n")
    given = {"TIDEWHEEL_HOME": str(tmp_path), "CREDENTIALS_DIRECTORY": str(tmp_path)}
    found = [credentials("https://far", given)]
    given["TIDEWHEEL_TOKEN_FILE"] = str(tmp_path / "file")
    found.append(credentials("https://far", given))
    given["TIDEWHEEL_TOKEN"] = "of-variable"
    found.append(credentials("https://far", given))
    assert [one.token for one in found] == ["of-systemd", "of-file", "of-variable"]
    (tmp_path / "file").write_text("\n")
    del given["TIDEWHEEL_TOKEN"]
    with pytest.raises(BadSetting, match="no token was found there"):
        credentials("https://far", given)
