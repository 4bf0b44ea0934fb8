"""Finds the workflow that a Python file defines, by executing the file.

That is as safe as the file is: only for definitions that their user trusts like any script.
"""

from __future__ import annotations

import importlib
import runpy
import sys
import traceback
from pathlib import Path

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.python_api.refusals import BadStatement
from tidewheel.formats.python_api.workflow import Workflow

LOADED = "__tidewheel__"  # so that `if __name__ == "__main__":` is passed over


def load_python(path: Path, findings: Findings) -> Workflow | None:
    """The one workflow of a file; None after a finding that says why there is none."""
    try:
        workflows = workflows_in(str(path))
    except BadStatement as bad:
        findings.error("bad-statement", bad.message, bad.hint, bad.position)
        return None
    except (Exception, SystemExit) as error:
        findings.error(
            "python-error",
            f"the file could not be executed: {type(error).__name__}: {error}",
            "run it with python3 to see where this comes from",
            _place_of(error, path),
        )
        return None
    if len(workflows) != 1:
        names = ", ".join(one.name for one in workflows)
        findings.error(
            "no-workflow",
            f"the file defines several workflows: {names}"
            if workflows
            else "the file defines no workflow",
            "keep exactly one in a name of the file: flow = Workflow(…)",
            Position(str(path)),
        )
        return None
    return workflows[0]


def workflows_in(home: str) -> list[Workflow]:
    """Those that a name of the module or file stands for, each once."""
    if home.endswith(".py"):
        _add_to_path(Path(home).absolute().parent)
        names = runpy.run_path(home, run_name=LOADED)
    else:
        names = vars(importlib.import_module(home))
    found = [value for value in names.values() if isinstance(value, Workflow)]
    return list({id(one): one for one in found}.values())


def _add_to_path(folder: Path) -> None:
    """For its own modules, also those that a function imports only when it is called."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _place_of(error: BaseException, path: Path) -> Position:
    if isinstance(error, SyntaxError) and error.filename:
        return Position(error.filename, error.lineno or 0)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return Position(str(path), lines[-1] or 0 if lines else 0)
