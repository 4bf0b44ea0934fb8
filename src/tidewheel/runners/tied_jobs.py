"""Jobs that die with their worker, whatever they did to get away from it.

A job's parent-death signal reaches its shell only, so the job runs as pid 1 of a pid
namespace: when that process ends, the kernel ends everything in the namespace, daemons
included. bubblewrap does it for every user in about 7 ms; unshare needs root or user
namespaces, and setpriv ties unshare itself to the worker.
"""

from __future__ import annotations

import shutil
import subprocess

from tidewheel.errors import BadSetting

_BWRAP = ("bwrap", "--dev-bind", "/", "/")
_BWRAP_TIES = ("--unshare-pid", "--die-with-parent", "--new-session", "--as-pid-1", "--")
_UNSHARE = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child")
_OWN_USER = ("--user", "--map-current-user")

# Best first. A /proc of the namespace's own cannot be mounted inside some containers.
PREFIXES: tuple[tuple[str, ...], ...] = (
    (*_BWRAP, "--proc", "/proc", *_BWRAP_TIES),
    (*_BWRAP, *_BWRAP_TIES),
    (*_UNSHARE, "--mount-proc", "--"),
    (*_UNSHARE, *_OWN_USER, "--mount-proc", "--"),
    (*_UNSHARE, "--"),
    (*_UNSHARE, *_OWN_USER, "--"),
)
_PROBE_SECONDS_MAX = 10.0


def tying_prefix(prefixes: tuple[tuple[str, ...], ...] = PREFIXES) -> tuple[str, ...]:
    """The command to put before a job's own; refused where none of them works."""
    for prefix in prefixes:
        program = shutil.which(prefix[0])
        if program is not None and _works((program, *prefix[1:])):
            return (program, *prefix[1:])
    raise BadSetting(
        "tie_jobs",
        True,
        "a machine with bubblewrap (package bubblewrap), or with unshare and setpriv "
        "(util-linux) and user namespaces; install bubblewrap, or start the worker without "
        "tie_jobs: then a worker that is started later on this host takes over its jobs",
    )


def _works(prefix: tuple[str, ...]) -> bool:
    """Being installed is not enough: containers often forbid namespaces."""
    try:
        probe = subprocess.run(
            (*prefix, "/bin/sh", "-c", "exit 0"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0
