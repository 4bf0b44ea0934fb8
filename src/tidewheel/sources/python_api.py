"""Keeps the old name of `tidewheel.formats.python_api`, under which definitions import it.

Jobs that an earlier version submitted start it as a program.
"""

from tidewheel.formats.python_api import Workflow, all_of, any_of

__all__ = ["Workflow", "all_of", "any_of"]

if __name__ == "__main__":
    from runpy import run_module

    run_module("tidewheel.formats.python_api", run_name="__main__", alter_sys=True)
