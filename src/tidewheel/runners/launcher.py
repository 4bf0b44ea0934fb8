"""Starts jobs as the users that a map names: the one process of a worker that stays root (S25).

It is a program of its own and imports nothing of tidewheel, so that it can be read as a whole.
It trusts the map that it is started with, and not the worker, whose jobs are strangers'. The
worker asks for the shell, with a name; the user is that of the first pattern that matches it,
never root. What else it sends (words, environment, files) takes effect after all rights are
given up. So a worker that was taken over can start what it likes as users of the map, which
is what it is there for, and gains nothing else here.

A request is a packet with open files: the request as JSON, the job's two outputs, then folders
and files whose group becomes that of the job's user, if they are the worker's own. The answer
is the job's process, or why there is none. When the worker is gone, the process groups that
must not outlive it are killed; the others go on.
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import re
import selectors
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

SHELL = "/bin/sh"
FILES_MAX = 32  # in a request
FILES_OWN_MAX = 65_536  # a job inherits none of them
REQUEST_BYTES_MAX = 16 * 1024 * 1024
_PR_SET_NO_NEW_PRIVS = 38


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
    if ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError("no_new_privs cannot be set")
    if 0 in (*os.getresuid(), *os.getresgid(), *os.getgroups()):
        raise OSError(f"{user.pw_name} has rights of root")


def start(
    users: dict[str, Any], request: dict[str, object], files: list[int]
) -> dict[str, object]:
    """Starts the shell with these words, and returns its process, or why there is none."""
    name, words, environment = request["name"], request["words"], request["environment"]
    if not isinstance(words, list) or not isinstance(environment, dict):
        raise ValueError("words are a list, the environment is an object")
    user = user_for(str(name), users["jobs"])
    if user is None:
        return {"refused": f"no user is mapped to {name!r} on this worker (--run-as)"}
    out, err, *shared = files
    if any(os.fstat(file).st_uid != users["worker_uid"] for file in shared):
        return {"refused": "a folder that the job needs is not the worker's"}
    for file in shared:
        os.fchown(file, -1, user.pw_gid)
    own = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
                os.dup2(file, number)
            os.closerange(3, FILES_MAX + FILES_OWN_MAX)
            become(user)
            os.umask(0o022)
            for signaled in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
                signal.signal(signaled, signal.SIG_DFL)
            os.execve(SHELL, [SHELL, *map(str, words)], {**environment, **own})
        except BaseException as error:
            os.write(2, f"the job was not started: {error}\n".encode())
        finally:
            os._exit(126)
    with open(f"/proc/{pid}/stat", "rb") as row:  # it is not reaped before this is answered
        started = int(row.read().rpartition(b")")[2].split()[19])
    return {"pid": pid, "started": started}


def serve(users: dict[str, Any], asked: socket.socket) -> None:
    """Answers requests until the worker is gone, then kills what must not outlive it."""
    fenced: set[int] = set()
    try:
        with suppress(OSError), selectors.DefaultSelector() as ready:
            ready.register(asked, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    if key.data is None:
                        if not answered(users, asked, ready, fenced):
                            return
                        continue
                    ready.unregister(key.fd)  # a job that has ended
                    os.close(key.fd)
                    os.waitpid(key.data, 0)
                    fenced.discard(key.data)
    finally:
        for pid in fenced:  # none is reaped, so none of these numbers is another's
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


def answered(
    users: dict[str, Any], asked: socket.socket, ready: selectors.BaseSelector, fenced: set[int]
) -> bool:
    """Answers one request; False if the worker is gone."""
    _, files, _, _ = socket.recv_fds(asked, 1, FILES_MAX)
    if not files:
        return False
    request: dict[str, object] = {}
    try:
        request = json.loads(os.pread(files[0], REQUEST_BYTES_MAX, 0))
        answer = start(users, request, files[1:])
    except Exception as error:  # whatever the worker sent, the jobs of others go on
        answer = {"refused": f"the launcher cannot start it: {error!r}"}
    for file in files:
        os.close(file)
    job = answer.get("pid")
    if isinstance(job, int):
        fenced.add(job)  # until the worker knows of it
        ready.register(os.pidfd_open(job), selectors.EVENT_READ, job)
    asked.send(json.dumps(answer).encode())
    if isinstance(job, int) and not request.get("fenced"):
        fenced.discard(job)
    return True


def main() -> None:
    """Serves the worker at the other end of standard input."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    serve(json.loads(sys.argv[1]), socket.socket(fileno=0))


if __name__ == "__main__":
    main()
