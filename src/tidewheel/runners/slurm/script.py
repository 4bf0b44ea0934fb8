"""The script that Slurm runs: directives, then a wrapper around the job as it was submitted.

As with the shell runner the wrapper writes down how the job ended, so that nobody has to ask
Slurm for an exit status within the minutes for which it remembers. It begins nothing if its
record is void, or if the job has begun before: a job that Slurm puts back into its queue, after
a node died, is not this attempt any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from tidewheel.runners.job_directory import WRITE_EXIT, write_whole

ENVIRONMENT_NAME = "job.environment"
TIMES_NAME = "job.times"
NOT_OURS = 125  # exit status of a job that must not begin

_WRAPPER = """\
umask 077
cd -- {directory} || exit 126
unset OLDPWD
asked= mine=
trap asked=1 HUP INT QUIT USR1 USR2 PIPE ALRM TERM
while read -r line; do
  case $line in
    key={key}) mine=1 ;;
    void) mine= ;;
  esac
done < job.slurm
[ -n "$mine" ] || exit {not_ours}
if [ -e job.status ]; then
  echo "tidewheel: this attempt began before; Slurm may not begin it again" >&2
  exit {not_ours}
fi
. ./{environment}
read -r row < /proc/$$/stat
set -- $row
echo "pid=$$ start=${{22}} boot=slurm/$SLURM_JOB_ID node=$SLURMD_NODENAME" > job.status
[ -z "$asked" ] || exit 143
{run}
code=$?
times > {times}
{write_exit}echo "exit=$code${{asked:+ asked=1}}" >> job.status
exit $code
"""


def batch_script(
    lines: Sequence[str], directory: Path, key: str, *, script: str, limits: str
) -> str:
    """Returns what sbatch is given; it reads the directives at the head by itself."""
    run = f"bash {quote(script)}"
    if limits:
        limited = f'{limits} exec bash "$0"'
        run = f"bash -c {quote(limited)} {quote(script)}"
    body = _WRAPPER.format(
        directory=quote(str(directory)),
        key=key,
        not_ours=NOT_OURS,
        environment=ENVIRONMENT_NAME,
        times=TIMES_NAME,
        run=run,
        write_exit=WRITE_EXIT,
    )
    return "\n".join(["#!/bin/sh", *lines, body])


def write_environment(directory: Path, environment: Mapping[str, str]) -> None:
    """Writes the environment for the job alone: neither Slurm's files nor the arguments of a
    process show it."""
    lines = [f"export {name}={quote(value)}" for name, value in environment.items()]
    content = "\n".join([*lines, ""]).encode(errors="surrogateescape")
    write_whole(directory / ENVIRONMENT_NAME, content, mode=0o600)


def read_variable(directory: Path, name: str) -> str:
    """Returns what a job was told, for an adopter; empty if that is not known."""
    beginning = f"export {name}="
    try:
        text = (directory / ENVIRONMENT_NAME).read_text(errors="surrogateescape")
    except OSError:
        return ""
    found = (
        line.removeprefix(beginning) for line in text.split("\n") if line.startswith(beginning)
    )
    return next(found, "").strip("'")


def read_cpu_seconds(directory: Path) -> float | None:
    """Returns what a job and its children have used, as the shell counted it."""
    try:
        lines = (
            (directory / TIMES_NAME).read_text(encoding="ascii", errors="replace").split("\n")
        )
        return round(sum(map(_seconds, lines[1].split())), 3)
    except (OSError, IndexError, ValueError):
        return None


def _seconds(text: str) -> float:
    minutes, _, seconds = text.rstrip("s").partition("m")
    return int(minutes) * 60 + float(seconds)
