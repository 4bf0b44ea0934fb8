"""Reads what a command says to Slurm: the lines ``#SBATCH …`` at its head, as sbatch does.

A task says that it is for Slurm by the label ``runner:slurm``, which only workers with that
runner offer. What it wants of Slurm stands in its command. So a script that was written for
sbatch is a command as it is, and nobody else has to know of directives.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence

from tidewheel.core.queue.resources import Resources, runner_label

RUNNER = "slurm"
RUNNER_LABEL = runner_label(RUNNER)
PREFIX = "#SBATCH"
SECONDS_PER_MINUTE = 60
MIB = 1024 * 1024
SHORT_LENGTH = 2  # of "-p"
ABBREVIATION_LENGTH_MIN = 4  # "--ar" is read as --array

Directives = tuple[tuple[str, str], ...]

# Directives that ask for the same resource; the first is the one that we write.
_CPU = ("--cpus-per-task", "-c")
_MEMORY = ("--mem", "--mem-per-cpu", "--mem-per-gpu")
_GPU = ("--gres", "--gpus", "-G", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket")
_NODES = ("--nodes", "-N")
_EXCLUSIVE = ("--exclusive",)
_TIME = ("--time", "-t")
# One attempt is one job of this cluster, and sbatch has to come back at once.
_REFUSED = {
    "--array": "write one task for each element: an attempt is one job",
    "-a": "write one task for each element: an attempt is one job",
    "--wait": "leave it out: the worker waits",
    "-W": "leave it out: the worker waits",
    "--test-only": "leave it out: nothing would be run",
    "--wrap": "leave it out: the command is the script",
    "--clusters": "run a worker on the other cluster",
    "-M": "run a worker on the other cluster",
    "hetjob": "heterogeneous jobs are not supported; write a task for each part",
    "packjob": "heterogeneous jobs are not supported; write a task for each part",
}


def directive_lines(directives: Iterable[tuple[str, str]]) -> list[str]:
    """Returns directives as lines for the head of a command; no value can break its line."""
    return [
        _line(" ".join(name.split()), " ".join(value.split())) for name, value in directives
    ]


def head_lines(command: str) -> list[str]:
    """Returns the directives of a command, up to the first line that is more than a comment."""
    found = []
    for line in command.split("\n"):
        if line.startswith(PREFIX):
            found.append(line.replace("\0", "").rstrip("\r"))
        elif line.strip() and not line.startswith("#"):
            break
    return found


def with_directives(command: str, directives: Iterable[tuple[str, str]]) -> str:
    """Returns a command with directives before its own ones, which count more."""
    lines = directive_lines(directives)
    if not lines:
        return command
    first, newline, rest = command.partition("\n")
    if first.startswith("#!"):
        return "\n".join([first, *lines, rest]) if newline else "\n".join([first, *lines])
    return "\n".join([*lines, command])


def names_of(lines: Iterable[str]) -> list[str]:
    """Returns the names of the options that the lines set."""
    words = (word for line in lines for word in _words(line.removeprefix(PREFIX)))
    return [_name(word) for word in words if word.startswith("-") or word in _REFUSED]


def _words(text: str) -> list[str]:
    """Returns the words of a line as sbatch divides it: what is in quotes is one word."""
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quote without its end: sbatch says so
        return text.split()


def refusal(lines: Sequence[str]) -> str:
    """Returns why a job with these directives cannot be one attempt; empty if it can."""
    for name in names_of(lines):
        for refused, advice in _REFUSED.items():
            is_short_for = len(name) >= ABBREVIATION_LENGTH_MIN and refused.startswith(name)
            if name == refused or is_short_for:
                return f"the directive {name} is not accepted here; {advice}"
    return ""


def resource_directives(
    asked: Resources, time_limit_seconds: float | None, given: Iterable[str] = ()
) -> Directives:
    """Returns the directives that ask Slurm for these resources.

    Those are left out that ``given``, the names of directives in the command, ask for already.
    Slurm counts a time limit in minutes, and rounds up.
    """
    taken = frozenset(given)
    minutes, seconds = divmod(math.ceil(time_limit_seconds or 0), SECONDS_PER_MINUTE)
    wanted = (
        (_CPU, asked.cpu, str(math.ceil(asked.cpu))),
        (_MEMORY, asked.memory_bytes, f"{math.ceil(asked.memory_bytes / MIB)}M"),
        (_GPU, asked.gpu, f"gpu:{asked.gpu}"),
        (_NODES, asked.nodes > 1, str(asked.nodes)),
        (_EXCLUSIVE, asked.exclusive, ""),
        (_TIME, time_limit_seconds, f"{minutes}:{seconds:02d}"),
    )
    return tuple(
        (one[0], text) for one, is_asked, text in wanted if is_asked and taken.isdisjoint(one)
    )


def _line(name: str, value: str) -> str:
    option = name if name.startswith("-") else f"--{name}"
    if not value:
        return f"{PREFIX} {option}"
    is_plain = " " not in value and "#" not in value
    is_quoted = value[0] == value[-1] and value[0] in "'\""
    shown = value if is_plain or is_quoted else f'"{value}"'
    return f"{PREFIX} {option}{' ' if len(option) == SHORT_LENGTH else '='}{shown}"


def _name(word: str) -> str:
    option = word.partition("=")[0]
    if not option.startswith("-"):
        return word
    return option if option.startswith("--") else option[:SHORT_LENGTH]
