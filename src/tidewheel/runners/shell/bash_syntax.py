"""Finds the first mistake of syntax in a bash script, without executing any of it."""

from __future__ import annotations

import os
import re
import subprocess

from tidewheel.lazy_dataclasses import NamedTuple

_SECONDS_MAX = 10.0  # bash reads a megabyte in a tenth of a second
_SAID = re.compile(r"/dev/stdin: line (\d+): (.+)")
# bash takes the rest of the file for the text, and so would the job for what follows it.
_OPEN_TEXT = re.compile(r"warning: here-document at line (\d+) (.+)")


class SyntaxProblem(NamedTuple):
    """Holds the number of a line of the script, from 1, and what bash says about that line."""

    line: int
    words: str


def bash_syntax_problem(script: str) -> SyntaxProblem | None:
    """Returns the first mistake in a script; None if there is none, or bash cannot be asked."""
    # Nothing of our environment: bash reads functions and files that it names.
    clean = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        answer = subprocess.run(
            ("bash", "--norc", "--noprofile", "-n", "/dev/stdin"),
            input=script.encode(),
            env=clean,
            capture_output=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = _SAID.search(answer.stderr.decode(errors="replace"))
    if said is None:
        return None
    if (text := _OPEN_TEXT.fullmatch(said[2])) is not None:
        return SyntaxProblem(int(text[1]), f"the here-document is {text[2]}")
    # bash tells of what is open at the end with the number of the line after the last.
    return SyntaxProblem(min(int(said[1]), len(script.splitlines()) or 1), said[2])
