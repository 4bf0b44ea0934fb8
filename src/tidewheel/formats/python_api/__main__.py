"""Runs a job that calls a function: `python3 -m tidewheel.formats.python_api MODULE TASK`.

It imports the module, which makes the workflow again, and calls the function of that task.
MODULE is the name of a module in a package, or the path of a file.
"""

from __future__ import annotations

import sys

from tidewheel.formats.python_api.workflow import workflows_in


def main(home: str, task: str) -> None:
    for workflow in workflows_in(home):
        if workflow.function(task) is not None:
            workflow.run_job(task)
            return
    sys.exit(f"{home} has no workflow with a function that is the task {task!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
