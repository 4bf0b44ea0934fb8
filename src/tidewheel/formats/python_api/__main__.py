"""Runs a job that calls a function: `python3 -m tidewheel.formats.python_api MODULE TASK`.

It imports the module, which makes the workflow again, and calls the function of that task.
MODULE is the name of a module in a package, or the path of a file.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from tidewheel.formats.python_api.function_jobs import FunctionToReturn, is_success
from tidewheel.formats.python_api.workflow import Workflow, workflows_in


def main(home: str, task: str) -> None:
    to_return = FunctionToReturn(task)
    to_return.note()
    try:
        _run(_workflow_of(home, task), task)
    except SystemExit as end:
        if is_success(end):
            to_return.strike_out()
        raise
    to_return.strike_out()


def _workflow_of(home: str, task: str) -> Workflow:
    try:
        found = workflows_in(home)
    except SystemExit as end:
        if is_success(end):
            sys.exit(f"{home} called sys.exit() while it was imported: {task!r} did nothing")
        raise
    for workflow in found:
        if workflow.function(task) is not None:
            return workflow
    sys.exit(f"{home} has no workflow with a function for the task {task!r}")


def _run(workflow: Workflow, task: str) -> None:
    """Calls the function; if it fails, the traceback begins with the author's own code."""
    try:
        workflow.run_job(task)
    except Exception as error:
        ours, calls = str(Path(__file__).parent), error.__traceback__
        while calls is not None and calls.tb_frame.f_code.co_filename.startswith(ours):
            calls = calls.tb_next
        traceback.print_exception(error.with_traceback(calls))
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
