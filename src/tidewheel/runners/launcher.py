"""Starts and ends jobs as the users that a map names: what of a worker stays root (S25).

It is a program of its own and imports nothing of tidewheel, so that it can be read as a whole.
It trusts the map that it is started with, and not the worker, whose jobs are strangers'. The
worker asks for the shell, with a name; the user is that of the first pattern that matches it,
never root. What else it sends (words, environment, files) takes effect after all rights are
given up. So a worker that was taken over can start what it likes as users of the map, which
is what it is there for, and gains nothing else here: what it has ended is of such users, too.

A request is a packet with open files: the request as JSON and, for a job, its two outputs, then
folders and files whose group becomes that of the job's user, if they are the worker's own and
no other user's. The answer is a process, or why there is none.

Each job has a keeper: a fork of this program that stays root, so that no job can end it, and
that becomes the parent of whatever loses its own. So all that a job has started is below its
keeper, whatever it did to hide, and is found there and ended by another fork. Keepers are known
by their name, ``job-PID``, as they outlive this program: the next one ends their jobs. When the
worker is gone, the jobs that must not outlive it are ended; the others go on.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import pwd
import re
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

SHELL = "/bin/sh"
FILES_MAX = 32  # in a request
FILES_OWN_MAX = 65_536  # a job inherits none of them
BYTES_MAX = 65_536
REQUEST_BYTES_MAX = 16 * 1024 * 1024
ROUNDS_MAX = 12  # of looking for what is left of a job, and killing it
ROUND_SECONDS = 0.1
ROUNDS_AT_LARGE_MAX = 3  # then its user's processes are stopped while it is looked for
TRIES_MAX = 100
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_prctl = ctypes.CDLL(None).prctl


def user_for(name: str, rows: list[list[str]]) -> pwd.struct_passwd | None:
    """Returns the user of the first pattern that matches a name; None if none matches."""
    for pattern, user in rows:
        if re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL):
            return pwd.getpwnam(user)
    return None


def become(user: pwd.struct_passwd) -> None:
    """Gives up all rights of this process for those of a user, for good; root is refused."""
    os.initgroups(user.pw_name, user.pw_gid)
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    if _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError("no_new_privs cannot be set")
    if 0 in (*os.getresuid(), *os.getresgid(), *os.getgroups()):
        raise OSError(f"{user.pw_name} has rights of root")


def forked(work: Callable[[], None]) -> int:
    """Starts a process that does this work and ends; returns its number."""
    pid = os.fork()
    if pid == 0:
        status = 126
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            work()
            status = 0
        except BaseException as error:
            os.write(2, f"the launcher: {error}\n".encode())
        finally:
            os._exit(status)
    return pid


class Row(NamedTuple):
    """Holds what /proc shows of a process; with ``started`` it is mistaken for no later one."""

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    started: int
    uid: int  # the real one, which a job cannot change


def read_row(pid: int) -> Row | None:
    """Returns what /proc shows of a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            named, _, rest = file.read().rpartition(")")
        with open(f"/proc/{pid}/status", errors="replace") as file:
            uid = int(file.read().partition("\nUid:")[2].split()[0])
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return None
    fields = rest.split()
    parent, group, session, started = (int(fields[place]) for place in (1, 2, 3, 19))
    return Row(pid, named.partition("(")[2], fields[0], parent, group, session, started, uid)


def start(
    users: dict[str, Any], user: pwd.struct_passwd, request: dict[str, Any], files: list[int]
) -> dict[str, Any]:
    """Starts the shell with these words, and returns its process, or why there is none."""
    words, environment = request["words"], request["environment"]
    if not isinstance(words, list) or not isinstance(environment, dict):
        raise ValueError("words are a list, the environment is an object")
    out, err, *shared = files
    for file in shared:
        facts = os.fstat(file)
        if facts.st_uid != users["worker_uid"]:
            return {"refused": "a folder that the job needs is not the worker's"}
        if facts.st_gid not in (users["worker_gid"], user.pw_gid):
            seen = f"its group is {facts.st_gid}, not the group of {user.pw_name}"
            hint = "name the earlier user in the file of --run-as, or start a new run"
            return {"refused": f"a folder of the job was another user's: {seen}; {hint}"}
    for file in shared:
        os.fchown(file, -1, user.pw_gid)
    own = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}

    def be_job() -> None:
        os.setsid()
        for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
            os.dup2(file, number)
        os.closerange(3, FILES_MAX + FILES_OWN_MAX)
        become(user)
        os.umask(0o022)
        for signaled in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(signaled, signal.SIG_DFL)
        os.execve(SHELL, [SHELL, *map(str, words)], {**environment, **own})

    reading, writing = os.pipe()
    with open(reading, "rb") as told:
        with open(writing, "wb"):
            keeper = forked(partial(keep, be_job, writing))
        if line := told.readline():
            return {**json.loads(line), "keeper": keeper}
    raise BlockingIOError(errno.EAGAIN, "no keeper")  # it could not even fork


def keep(be_job: Callable[[], None], telling: int) -> None:
    """Starts a job, tells its process, and stays above it until nothing of it is left."""
    os.setsid()
    if _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("no subreaper")
    job = forked(be_job)
    row = read_row(job)
    assert row is not None, "a child keeps its number until it is reaped"
    with open("/proc/self/comm", "w") as name:
        name.write(f"job-{job}")
    os.write(telling, json.dumps({"pid": job, "started": row.started}).encode() + b"\n")
    close_all()
    with suppress(ChildProcessError):
        while True:
            os.wait()


def close_all() -> None:
    """Lets go of the files of the launcher, of which the worker must hear the end."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.closerange(3, FILES_MAX + FILES_OWN_MAX)


def members(uid: int, leader: int, started: int) -> tuple[list[Row], bool]:
    """Returns the processes of the job with this leader that can be seen: those of its user
    below its keeper, and in the leader's session, whoever started it. And says whether there
    may be more: a keeper stays until nothing is left, seen or not."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    rows = [row for row in map(read_row, pids) if row is not None and row.state not in "ZXx"]
    named = [row for row in rows if (row.uid, row.name) == (0, f"job-{leader}")]
    keepers = sorted((row.started, row.pid) for row in named if row.started <= started)
    found = {pid for _, pid in keepers[-1:]}
    if any((row.pid, row.started) == (leader, started) for row in rows):
        found |= {row.pid for row in rows if leader in (row.pid, row.group, row.session)}
    size = -1
    while size != len(found):
        size = len(found)
        found |= {row.pid for row in rows if row.parent in found}
    left = [row for row in rows if row.pid in found and row.uid == uid]
    return left, bool(left or keepers)


def send(rows: list[Row], number: int) -> None:
    """Signals these very processes, and none that has the number of one by now."""
    for row in rows:
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(row.pid)
            now = read_row(row.pid)
            if now is not None and (now.started, now.uid) == (row.started, row.uid):
                signal.pidfd_send_signal(descriptor, number)
            os.close(descriptor)


def end(user: pwd.struct_passwd, leader: int, started: int, number: int) -> None:
    """Sends SIGTERM to all processes of a job, or SIGKILL until there are none."""
    close_all()
    if number != signal.SIGKILL:
        asked, _ = members(user.pw_uid, leader, started)
        send(asked, signal.SIGTERM)
        send(asked, signal.SIGCONT)  # one that is stopped sees the SIGTERM only then
        return
    for nth in range(ROUNDS_MAX):
        is_hunt = nth >= ROUNDS_AT_LARGE_MAX
        try:
            if is_hunt:
                signal_everything_of(user, signal.SIGSTOP)
            left, may_be_more = members(user.pw_uid, leader, started)
            send(left, signal.SIGKILL)
        finally:
            if is_hunt:
                signal_everything_of(user, signal.SIGCONT)
        if not may_be_more:
            return
        time.sleep(ROUND_SECONDS)


def signal_everything_of(user: pwd.struct_passwd, number: int) -> None:
    """Signals all processes of a user at once, so that none slips through by forking.

    It takes one of the user's own to do so, which others of the user may end or stop before.
    """

    def signal_all() -> None:
        become(user)
        os.kill(-1, number)

    for _ in range(TRIES_MAX):
        child = forked(signal_all)
        _, status = os.waitpid(child, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        elif status == 0:
            return


class Launcher:
    """Answers requests of the worker, and knows which jobs must not outlive it."""

    def __init__(self, users: dict[str, Any], asked: socket.socket) -> None:
        self.users, self.asked = users, asked
        self.fenced: dict[int, tuple[pwd.struct_passwd, int, int]] = {}  # by their keepers

    def serve(self) -> None:
        """Answers requests until the worker is gone, then ends what must not outlive it."""
        woken, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with suppress(OSError):
            while True:
                ready, _, _ = select.select((self.asked.fileno(), woken), (), ())
                if woken in ready:
                    os.read(woken, BYTES_MAX)
                    self.reap()
                if self.asked.fileno() in ready and not self.answered():
                    break
        for job in self.fenced.values():  # all at once: each takes a moment
            forked(partial(end, *job, signal.SIGKILL))

    def reap(self) -> None:
        """Buries forks that have ended: none has a file here, however many a user's jobs leave
        behind."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self.fenced.pop(ended, None)

    def answered(self) -> bool:
        """Answers one request; False if the worker is gone."""
        _, files, _, _ = socket.recv_fds(self.asked, 1, FILES_MAX)
        if not files:
            return False
        request: dict[str, Any] = {}
        try:
            request = json.loads(os.pread(files[0], REQUEST_BYTES_MAX, 0))
            answer = self.answer(request, files[1:])
        except Exception as error:  # whatever the worker sent, the jobs of others go on
            number = getattr(error, "errno", None)  # of the machine, if it is the reason
            answer = {"refused": f"the launcher cannot start it: {error!r}", "errno": number}
        for file in files:
            os.close(file)
        keeper = answer.pop("keeper", 0)
        self.asked.send(json.dumps(answer).encode())
        if keeper and not request.get("fenced"):
            self.fenced.pop(keeper, None)
        return True

    def answer(self, request: dict[str, Any], files: list[int]) -> dict[str, Any]:
        """Does what the worker asks for, and returns what it is told."""
        name = str(request["name"])
        user = user_for(name, self.users["jobs"])
        if user is None:
            return {"refused": f"no user is mapped to {name!r} on this worker (--run-as)"}
        if user.pw_uid == 0:
            return {"refused": f"{user.pw_name} has rights of root"}
        if "end" in request:
            leader, started, number = map(int, request["end"])
            child = forked(partial(end, user, leader, started, number))
            row = read_row(child)  # it is not reaped before this is answered
            return {"pid": child, "started": row.started if row else 0}
        told = start(self.users, user, request, files)
        if "pid" in told:  # until the worker knows of it
            self.fenced[told["keeper"]] = user, told["pid"], told["started"]
        return told


def main() -> None:
    """Serves the worker at the other end of standard input."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    Launcher(json.loads(sys.argv[1]), socket.socket(fileno=0)).serve()


if __name__ == "__main__":
    main()
